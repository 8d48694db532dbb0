/**
 * Where a client looks for the bootstrap of a listener: at the hashed ports, or at the port that the name service
 * names. It follows each greeting until one has led to a channel.
 */
import { isDaemonExpected } from '../../nameservice/socket-path.ts'
import {
  type ConnectFunction,
  callBootstrap,
  callHashedPort,
  callNeighbour,
  type Follow,
  type Greeted,
  greetingTimeoutMs,
  Race,
  type Sought,
} from '../bootstrap/bootstrap-client.ts'
import { type Kernel, realKernel } from '../bootstrap/kernel.ts'
import { namesToCall, neighbourName } from '../bootstrap/neighbours.ts'
import { askingOf, reasonElsewhere, rememberSilent } from '../bootstrap/remote-hosts.ts'
import { TimeLimit } from '../bootstrap/time-limit.ts'
import { publishStep } from '../host/steps.ts'
import { type Family, UNIX } from '../host/unix-paths.ts'
import { type FallbackReason, fallbackReason } from '../reasons.ts'
import { findBootstrapPort, inTime, LOOK_UP_MS_MAX, lookUpMs } from './names.ts'

/** Follows one greeting in a race with the others. */
type FollowInRace<T extends object> = (greeted: Greeted, race: Race) => Promise<T | FallbackReason>

/**
 * Calls the hashed ports, and at the same time the port that the name service names. A greeting that proves false costs
 * nothing but time: the client goes on to the next one.
 */
export async function findChannel<T extends object>(
  sought: Sought,
  connect: ConnectFunction,
  limit: TimeLimit,
  followInRace: FollowInRace<T>,
  kernel: Kernel = realKernel,
): Promise<T | FallbackReason> {
  publishStep('client calling')
  const race = new Race()
  const follow: Follow<T> = greeted => followInRace(greeted, race)
  const { address, family } = sought
  const leadsElsewhere = isElsewhere(address, family, kernel)
  const name = leadsElsewhere || family === UNIX ? neighbourName(sought) : undefined
  if (leadsElsewhere) {
    const neighbour = name && (await findNeighbour(sought, name, connect, race, follow, kernel))
    const isOnlyNear = sought.protocol === 'udp' || typeof askingOf(address, sought.port) === 'object'
    if (neighbour && (!isReason(neighbour) || isOnlyNear)) return neighbour
    // Datagrams stay within the host.
    if (sought.protocol === 'udp') return fallbackReason('NO_RENDEZVOUS')
    return await findRemote(sought, connect, limit, race, follow, kernel)
  }
  const hashed = callHashedPort(sought, connect, race, follow, greetingTimeoutMs(), kernel)
  if (family === UNIX) {
    const outcome = await hashed
    return isReason(outcome) && name
      ? await findNeighbour(sought, name, connect, race, follow, kernel)
      : outcome
  }
  if (!isDaemonExpected()) return await hashed
  const greeting = callNamed(sought, connect, race, kernel)
  const named = greeting.then(greeted => followIfGreeted(greeted, follow))
  const first = await Promise.race([hashed, named.then(one => (isReason(one) ? hashed : one))])
  if (!isReason(first)) return first
  // The time is for the name service and its greeting. What follows a greeting has limits of its own.
  if ((await inTime(greeting, lookUpMs())) === undefined) return first
  return (await named) ?? first
}

/** The listener of another network namespace that the rendezvous folder has under `name`, or one that shares it. */
async function findNeighbour<T extends object>(
  { port }: Sought,
  name: string,
  connect: ConnectFunction,
  race: Race,
  follow: Follow<T>,
  kernel: Kernel,
): Promise<T | FallbackReason> {
  let outcome: T | FallbackReason | undefined
  for (const one of namesToCall(name, kernel)) {
    const greeted = await callNeighbour(one, port, connect, race, kernel)
    outcome = await followIfGreeted(greeted, follow)
    if (!isReason(outcome)) return outcome
  }
  return outcome as FallbackReason
}

function isReason(outcome: object | undefined): outcome is FallbackReason | undefined {
  return outcome === undefined || 'code' in outcome
}

async function followIfGreeted<T extends object>(
  greeted: Greeted | FallbackReason | undefined,
  follow: Follow<T>,
): Promise<T | FallbackReason | undefined> {
  if (isReason(greeted)) return greeted
  try {
    return await follow(greeted)
  } catch (error) {
    return fallbackReason('HANDSHAKE', (error as Error).message)
  }
}

/** Calls the port that the name service names; undefined if it names none. */
async function callNamed(
  sought: Sought,
  connect: ConnectFunction,
  race: Race,
  kernel: Kernel,
  limit?: TimeLimit,
): Promise<Greeted | FallbackReason | undefined> {
  const { address, port } = sought
  const question = findBootstrapPort(address, port)
  // Wait no longer for a slow daemon: the answer is cached for the next connect.
  const found =
    limit === undefined
      ? await question
      : await inTime(question, Math.min(limit.leftMs, greetingTimeoutMs(LOOK_UP_MS_MAX)))
  if (found === undefined || limit?.isOver || race.isOver) return undefined
  return await callBootstrap(sought, found, connect, race, limit?.leftMs, kernel)
}

/**
 * On another host: calls the port that the name service names, then the hashed ports if the policy or the subnet
 * allows. A silent host is remembered.
 */
async function findRemote<T extends object>(
  sought: Sought,
  connect: ConnectFunction,
  limit: TimeLimit,
  race: Race,
  follow: Follow<T>,
  kernel: Kernel,
): Promise<T | FallbackReason> {
  const { address, port } = sought
  const asking = askingOf(address, port)
  if (typeof asking === 'object') return reasonElsewhere(asking, address, port)
  // The named port may use half of the time: the hashed ports need the rest.
  const namedLimit = asking === 'named' ? limit : new TimeLimit(limit.leftMs / 2, kernel.clock)
  const greeting = isDaemonExpected() ? await callNamed(sought, connect, race, kernel, namedLimit) : undefined
  const named = await followIfGreeted(greeting, follow)
  if (!isReason(named)) return named
  const outcome =
    asking === 'hashed'
      ? await callHashedPort(sought, connect, race, follow, limit.leftMs, kernel)
      : (named ?? fallbackReason('REMOTE_HOST', 'the name service does not know it'))
  if (isReason(outcome) && outcome.code === 'SILENT') rememberSilent(address)
  return outcome
}

/** Whether `address` belongs to another host. */
export function isElsewhere(address: string, family: Family, kernel: Kernel): boolean {
  return family !== UNIX && kernel.reachableOwnAddress(address) === undefined
}
