/** What a changed policy changes of the listeners and connections that exist. */
import type net from 'node:net'
import { openLog } from '../../nic/index.ts'
import { decideListener } from '../connect/listener-policy.ts'
import { withdraw } from '../connect/listeners.ts'
import { withoutMapping } from '../host/addresses.ts'
import { inTurns } from '../host/in-turns.ts'
import { allowsDriver, allowsUser, decide, ownPolicy } from '../policy/own-policy.ts'
import { NO_POLICY } from '../policy/policy.ts'
import type { Use } from '../policy/policy-schema.ts'
import { watchPolicy } from '../policy/policy-watch.ts'
import { PromotedHandle } from '../promotion/promoted-handle.ts'
import { EVENTS, publishEvent } from '../status/events.ts'
import { statusPage } from '../status/status-page.ts'
import type { SocketStream } from '../stream/socket-channel.ts'

const log = openLog('fastsockets:policy')

interface Decided {
  readonly use: Use
  readonly publish: () => void
}

/** Servers that listen, with what the policy has said. Only in programs with a policy. */
const decided = new Map<net.Server, Decided>()

/** Calls `apply` whenever another policy is in force. */
export function followPolicy(apply: () => void): void {
  watchPolicy(news => {
    statusPage().showPolicy(news.error !== undefined)
    publishEvent(EVENTS.policy, news)
    if (news.error === undefined) apply()
  })
}

/** `publish` makes the server reachable as the policy then says. */
export function noteDecided(server: net.Server, use: Use, publish: () => void): void {
  if (ownPolicy() === NO_POLICY) return
  // A program that opens and closes servers all the time leaves none here.
  for (const one of decided.keys()) if (!one.listening) decided.delete(one)
  decided.set(server, { use, publish })
}

/** Publishes the servers anew for which the policy says something else now. */
export function publishDecided(): void {
  for (const [server, { use, publish }] of [...decided]) {
    if (!server.listening || decideListener(server).use === use) continue
    withdraw(server)
    publish()
  }
}

/**
 * Moves connections to TCP that the policy keeps there now. Those that were fast from their first byte have no TCP below them, and
 * stay.
 */
export function moveForbidden(streams: readonly SocketStream[]): void {
  let stayCount = 0
  const move = (part: readonly SocketStream[]): void => {
    for (const stream of part.filter(isForbidden)) {
      const { sink } = stream as { sink: unknown }
      if (sink instanceof PromotedHandle) sink.demote(() => {})
      else stayCount++
    }
  }
  inTurns(streams, move, () => {
    if (stayCount > 0) log('%d connections stay fast: they have no TCP below them', stayCount)
  })
}

function isForbidden({ channel, role, addresses }: SocketStream): boolean {
  const { peerUid, transport } = channel
  if (!allowsDriver(transport) || (peerUid !== undefined && !allowsUser(peerUid))) return true
  if (addresses === undefined) return false
  return decide(role, withoutMapping(addresses.address), addresses.serverPort).use === 'tcp'
}
