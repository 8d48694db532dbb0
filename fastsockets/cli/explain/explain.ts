/** The transport that a connection of a relinked program would get, and why. */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { remoteAddress } from '../../bootstrap/remote-hosts.ts'
import { reasonAgainstFastWay } from '../../connect/fast-way.ts'
import { reachableOwnAddress } from '../../host/addresses.ts'
import { type Family, UNIX, unixKey } from '../../host/unix-paths.ts'
import { ownPolicy, ownProgram, startsOnTcp } from '../../policy/own-policy.ts'
import type { Decision } from '../../policy/policy.ts'
import { preciseReason } from '../../policy/required-error.ts'
import { pathOfName } from '../../policy/unix-names.ts'
import { rawPeers } from '../../raw/raw-peers.ts'
import { type FallbackReason, fallbackReason } from '../../reasons.ts'
import { foreignListener } from './foreign-listener.ts'
import { lightServer, type Start, startOf } from './start.ts'

export interface Explanation {
  readonly address: string
  /** `shm`, `verbs`, `tcp`, `pipe`, or `fails` if the policy requires the fast way and it is unavailable. */
  readonly outcome: string
  /** The policy's decision. */
  readonly policy: { readonly use: string; readonly because: string }
  /** The fallback reason; undefined if the connection would be fast. */
  readonly reason?: FallbackReason
  /** How it begins, and why; undefined if the policy says `tcp`. */
  readonly start?: Start
  /** The program that listens there, if it is not Node. */
  readonly foreign?: string
}

/**
 * One explanation for each address of `host`, in the order in which Node would try them. Makes the handshake with the
 * server, as a connect does, and no connection; nothing is sent over TCP to `port`.
 */
export async function explain(host: string, port: number, program = ownProgram()): Promise<Explanation[]> {
  const family = isIP(host)
  const addresses = family === 0 ? await lookup(host, { all: true }) : [{ address: host, family }]
  const explanations: Explanation[] = []
  for (const { address, family } of addresses) {
    const policy = ownPolicy()?.decide(program, 'client', address, port)
    const here = reachableOwnAddress(address)
    const target = (here && lightReason(policy?.use, address, port)) ?? here ?? remoteAddress(address, port)
    const found = await explainTarget(address, target, port, family === 6 ? 6 : 4, policy)
    explanations.push(withStart(found, address, port))
  }
  return explanations
}

function withStart(found: Explanation, address: string, port: number): Explanation {
  const { policy, reason } = found
  if (policy.use === 'tcp') return found
  const start = startOf(policy.use, address)
  if (reason?.code !== 'NOT_RELINKED') return { ...found, start }
  const foreign = foreignListener(address, port)
  if (foreign !== undefined) {
    const text = `${foreign} listens there, which is no Node program`
    return { ...found, start, foreign, reason: fallbackReason('NOT_RELINKED', text) }
  }
  return { ...found, start }
}

/** Of a server that has loaded nothing: it is not called unless a client would call it before the first byte. */
function lightReason(use: string | undefined, address: string, port: number): FallbackReason | undefined {
  const pid = use === 'require' || !startsOnTcp() ? undefined : lightServer(address, port)
  if (pid === undefined) return undefined
  const text = `process ${pid} listens there, is relinked, and has loaded nothing yet`
  return fallbackReason('STARTED_ON_TCP', text)
}

/** The same for a unix socket, by its name in rules. */
export async function explainUnix(name: string, program = ownProgram()): Promise<Explanation> {
  const policy = ownPolicy()?.decidePath(program, 'client', name)
  const target = unixKey(pathOfName(name)) ?? fallbackReason('PIPE')
  return await explainTarget(`unix:${name}`, target, 0, UNIX, policy)
}

async function explainTarget(
  address: string,
  target: string | FallbackReason,
  port: number,
  family: Family,
  policy: Decision | undefined,
): Promise<Explanation> {
  const { use, because } = policy ?? { use: 'tcp', because: 'the policy cannot be used' }
  const refusal = use === 'tcp' ? fallbackReason('POLICY', because) : undefined
  const found = await tryFastWay(reasonAgainstFastWay() ?? refusal ?? target, port, family)
  const reason =
    typeof found === 'string' ? undefined : family === UNIX ? found : preciseReason(found, address, port)
  const kernels = family === UNIX ? 'pipe' : 'tcp'
  const outcome = typeof found === 'string' ? found : use === 'require' ? 'fails' : kernels
  return { address, outcome, policy: { use, because }, ...(reason && { reason }) }
}

/** The fast wire, or TCP with the fallback reason. */
async function tryFastWay(
  target: string | FallbackReason,
  port: number,
  family: Family,
): Promise<string | FallbackReason> {
  if (typeof target !== 'string') return target
  const found = await rawPeers().reach(target, port, family)
  if ('code' in found) return found
  const { transport } = found.channel
  found.channel.close()
  return transport
}
