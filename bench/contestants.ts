/**
 * All contestants, in the order in which tables show them: from the machine's limit upwards, plain `node:net` in the
 * middle.
 */
import { contestant as amEvents } from './contestants/am-events.ts'
import { contestant as amPolling } from './contestants/am-polling.ts'
import { contestant as cLimit } from './contestants/c-limit.ts'
import { contestant as childIpc } from './contestants/child-ipc.ts'
import type { Ability, Contestant } from './contestants/contestant.ts'
import { contestant as messagePort } from './contestants/message-port.ts'
import { contestant as netHalfRelinked } from './contestants/net-half-relinked.ts'
import { contestant as netRelinked } from './contestants/net-relinked.ts'
import { contestant as netRelinkedServer } from './contestants/net-relinked-server.ts'
import { contestant as netTcp } from './contestants/net-tcp.ts'
import { contestant as netUnix } from './contestants/net-unix.ts'
import { contestant as nicShm } from './contestants/nic-shm.ts'
import { contestant as raw } from './contestants/raw.ts'
import { contestant as rawPolling } from './contestants/raw-polling.ts'
import { contestant as zeromqIpc } from './contestants/zeromq-ipc.ts'
import type { Suite, SuiteContext } from './suite.ts'

export const CONTESTANTS: readonly Contestant[] = [
  cLimit,
  nicShm,
  amPolling,
  rawPolling,
  amEvents,
  raw,
  netRelinked,
  netTcp,
  netHalfRelinked,
  netRelinkedServer,
  netUnix,
  messagePort,
  childIpc,
  zeromqIpc,
]

/** The names of all that may be in a suite. */
export function contestantsOf({ contestants }: Pick<Suite, 'contestants'>): readonly string[] {
  return contestants ?? CONTESTANTS.map(({ name }) => name)
}

/** Why a suite leaves a contestant out, or undefined. */
export type Objection = (contestant: Contestant) => string | undefined

export const POLLS: Objection = ({ polls }) => (polls ? 'it polls: each half takes a core' : undefined)
export const OWN_PARTNER: Objection = ({ partner }) =>
  partner === 'own' ? 'its halves belong together: no other client can join' : undefined

/**
 * The contestants that the user wants, that have the ability, and that can run here; records why others are left out.
 */
export async function contestantsFor(
  context: SuiteContext,
  ability: Ability,
  ...objections: readonly Objection[]
): Promise<Contestant[]> {
  const chosen: Contestant[] = []
  for (const contestant of CONTESTANTS) {
    if (!context.wants(contestant.name)) continue
    const reason =
      (contestant.abilities.includes(ability) ? undefined : (contestant.unable ?? WITHOUT[ability])) ??
      objections.map(objection => objection(contestant)).find(found => found !== undefined) ??
      (await contestant.whyNot?.())
    if (reason === undefined) chosen.push(contestant)
    else context.skip(contestant.name, reason)
  }
  return chosen
}

/** Why a contestant without the ability is left out. */
const WITHOUT: Readonly<Record<Ability, string>> = {
  pingPong: 'it makes no round trips',
  stream: 'it sends nothing one way',
  connect: 'its halves are connected once, when they start',
  takeTurns: 'both of its sides are the same',
  hold: 'it has no sockets of which there could be many',
}
