/**
 * A dialer's cache of earlier results, by host and port: a channel, the workers of a cluster, or the reason against the
 * fast way.
 */
import { performance } from '../../nic/performance.ts'
import { type FallbackCode, type FallbackReason, fallbackReason } from '../reasons.ts'
import type { SocketChannel } from '../stream/socket-channel.ts'
import { type Reached, WorkerGroup } from './worker-group.ts'

/** For how long a server that has accepted a TCP connection counts as not relinked. */
const NOT_RELINKED_TTL_MS = 2000
/** The same for a stranger on the hashed port. */
const STRANGER_TTL_MS = 60_000
/** Shorter: a server that sends no greeting may be relinked and busy. */
const SILENT_TTL_MS = 5000
/** Shorter: a server that hangs up may be relinked, without its device at the moment, or have too many callers. */
const HUNG_UP_TTL_MS = 5000
/** For how long an address that refused counts as empty, if another address of the same name has accepted. */
const REFUSED_TTL_MS = 1000
const ROUTES_MAX = 1024
/** After this many greetings that name a server which does not listen there, the connection uses TCP. */
export const MISLED_MAX = 4

/** Reasons that stay true for a while. All others are decided anew for each connect. */
const TTL_MS: Partial<Record<FallbackCode, number>> = {
  NOT_RELINKED: NOT_RELINKED_TTL_MS,
  VERSION: NOT_RELINKED_TTL_MS,
  OTHER_USER: NOT_RELINKED_TTL_MS,
  OTHER_HOST: NOT_RELINKED_TTL_MS,
  HANDSHAKE: NOT_RELINKED_TTL_MS,
  REMOTE_HOST: NOT_RELINKED_TTL_MS,
  NO_RENDEZVOUS: NOT_RELINKED_TTL_MS,
  ADDRESS: NOT_RELINKED_TTL_MS,
  STRANGER: STRANGER_TTL_MS,
  SILENT: SILENT_TTL_MS,
}

/** A listener in another process or thread that is not shared. */
export interface ChannelRoute {
  readonly channel: SocketChannel
  /** The address that a CONNECT carries (`Reached.address`). */
  readonly address: string
  readonly group?: undefined
  readonly reason?: undefined
  /** As `Reached.isProven`, or the listener has accepted a CONNECT. */
  isProven: boolean
  /** The peer's count of closed listeners, read just before the last CONNECT that this listener accepted. */
  listenersClosed: number | undefined
}

export type Route =
  | ChannelRoute
  | { readonly channel?: undefined; readonly group: WorkerGroup; readonly reason?: undefined }
  | {
      readonly channel?: undefined
      readonly group?: undefined
      readonly reason: FallbackReason
      readonly expiresMs: number
    }

/** Whether a reason is worth caching. */
export function lasts(reason: FallbackReason): boolean {
  return TTL_MS[reason.code] !== undefined
}

export class Routes {
  readonly #routes = new Map<string, Route>()
  /** The last hit: for a plain server, building the key costs more than the rest of our work for its connection. */
  #last: { readonly host: string; readonly port: number; readonly route: Route } | undefined

  /** The entry for a server, by the address or name that the program uses, unless it is stale. */
  find(host: string, port: number): Route | undefined {
    const last = this.#last
    if (last !== undefined && last.host === host && last.port === port && !isStale(last.route))
      return last.route
    const key = keyOf(host, port)
    const route = this.#routes.get(key)
    if (route === undefined) return undefined
    if (!isStale(route)) {
      this.#last = { host, port, route }
      return route
    }
    this.#routes.delete(key)
    return undefined
  }

  forget(host: string, port: number): void {
    this.#last = undefined
    this.#routes.delete(keyOf(host, port))
  }

  /** The policy has changed: what it allows is found anew. */
  clear(): void {
    this.#last = undefined
    this.#routes.clear()
  }

  rememberChannel(host: string, port: number, { channel, address, isProven }: Reached): ChannelRoute {
    const route = { channel, address, isProven, listenersClosed: undefined }
    this.#remember(host, port, route)
    return route
  }

  /** The workers behind a shared listener. */
  groupOf(host: string, port: number): WorkerGroup {
    const { group } = this.find(host, port) ?? {}
    if (group !== undefined) return group
    const made = new WorkerGroup()
    this.#remember(host, port, { group: made })
    return made
  }

  /**
   * To be called once a TCP connection is made: a server accepts there, but not by the fast way. False if another
   * connect has found a channel or workers since: their entry stays.
   */
  rememberReason(host: string, port: number, reason: FallbackReason): boolean {
    const codeTtlMs = TTL_MS[reason.code]
    const known = this.find(host, port)
    if (codeTtlMs === undefined || known?.channel !== undefined || known?.group !== undefined) return false
    const ttlMs = reason.mayPass === true ? Math.min(codeTtlMs, HUNG_UP_TTL_MS) : codeTtlMs
    this.#remember(host, port, { reason, expiresMs: performance.now() + ttlMs })
    return true
  }

  /** No program listens there: the next connect asks the kernel at once, without calling the hashed ports. */
  rememberRefused(host: string, port: number): void {
    if (this.find(host, port) !== undefined) return
    this.#remember(host, port, {
      reason: fallbackReason('NOT_RELINKED'),
      expiresMs: performance.now() + REFUSED_TTL_MS,
    })
  }

  #remember(host: string, port: number, route: Route): void {
    this.#last = undefined
    const key = keyOf(host, port)
    const isNew = !this.#routes.has(key)
    // Removes entries of channels that have ended: without another look-up of their key they would stay.
    if (route.channel !== undefined || this.#routes.size >= ROUTES_MAX) this.#forgetStale()
    if (isNew && this.#routes.size >= ROUTES_MAX) {
      const [oldest] = this.#routes.keys()
      if (oldest !== undefined) this.#routes.delete(oldest)
    }
    this.#routes.set(key, route)
  }

  #forgetStale(): void {
    for (const [key, route] of this.#routes) if (isStale(route)) this.#routes.delete(key)
  }
}

function isStale(route: Route): boolean {
  if (route.channel !== undefined) return !route.channel.isUsable
  if (route.group !== undefined) return route.group.isEmpty
  return route.expiresMs < performance.now()
}

function keyOf(host: string, port: number): string {
  return `${host} ${port}`
}
