/** What would become of a connection of a relinked program, and why. */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { reachableOwnAddress } from './addresses.ts'
import { reasonAgainstFastWay } from './fast-way.ts'
import { ownPolicy, ownProgram } from './policy/own-policy.ts'
import { rawPeers } from './raw/raw-peers.ts'
import { type FallbackReason, fallbackReason } from './reasons.ts'
import { remoteAddress } from './remote-hosts.ts'

export interface Explanation {
  readonly address: string
  /** `shm`, `verbs`, `tcp`, or `fails` if the policy requires the fast way and it is not to be had. */
  readonly outcome: string
  /** What the policy says. */
  readonly policy: { readonly use: string; readonly because: string }
  /** Why it is not fast, if it is not. */
  readonly reason?: FallbackReason
}

/**
 * One explanation for each address that `host` has, in the order in which they would be tried. Does what a connect does,
 * the handshake with the server included, short of the connection itself; nothing is sent over TCP to `port`.
 */
export async function explain(host: string, port: number, program = ownProgram()): Promise<Explanation[]> {
  const family = isIP(host)
  const addresses = family === 0 ? await lookup(host, { all: true }) : [{ address: host, family }]
  const explanations: Explanation[] = []
  for (const { address, family } of addresses) {
    const policy = ownPolicy()?.decide(program, 'client', address, port)
    const { use, because } = policy ?? { use: 'tcp', because: 'the policy cannot be used' }
    const found = await tryFastWay(address, port, family === 6 ? 6 : 4, use, because)
    const reason = typeof found === 'string' ? undefined : found
    const outcome = typeof found === 'string' ? found : use === 'require' ? 'fails' : 'tcp'
    explanations.push({ address, outcome, policy: { use, because }, ...(reason && { reason }) })
  }
  return explanations
}

/** The wire, or why it is none of the fast ones. */
async function tryFastWay(
  address: string,
  port: number,
  family: 4 | 6,
  use: string,
  because: string,
): Promise<string | FallbackReason> {
  const general = reasonAgainstFastWay()
  if (general !== undefined) return general
  if (use === 'tcp') return fallbackReason('POLICY', because)
  const target = reachableOwnAddress(address) ?? remoteAddress(address, port)
  if (typeof target !== 'string') return target
  const found = await rawPeers().reach(target, port, family)
  if ('code' in found) return found
  const { transport } = found.channel
  found.channel.close()
  return transport
}
