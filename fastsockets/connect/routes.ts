/** What a dialer remembers of where it has been: a channel, the workers of a cluster, or why there is none. */
import { performance } from '../../nic/real-time.ts'
import { type FallbackCode, type FallbackReason, fallbackReason } from '../reasons.ts'
import type { SocketChannel } from '../stream/socket-channel.ts'
import { type Reached, WorkerGroup } from './worker-group.ts'

/** How long a server counts as not relinked after it has accepted a TCP connection. */
const NOT_RELINKED_TTL_MS = 2000
/** The same for a stranger on the hashed port. */
const STRANGER_TTL_MS = 60_000
/** Somebody who was silent may be a server of ours that was busy. */
const SILENT_TTL_MS = 5000
/** Somebody who hung up without a word may be a server of ours whose device was away, or that had too many callers. */
const HUNG_UP_TTL_MS = 5000
/** An address of a host at which nobody listens, when somebody does at another one of it. */
const REFUSED_TTL_MS = 1000
const ROUTES_MAX = 1024

/** Reasons that stay true for a while. The others are decided anew each time. */
const TTL_MS: Partial<Record<FallbackCode, number>> = {
  NOT_RELINKED: NOT_RELINKED_TTL_MS,
  VERSION: NOT_RELINKED_TTL_MS,
  OTHER_USER: NOT_RELINKED_TTL_MS,
  OTHER_HOST: NOT_RELINKED_TTL_MS,
  HANDSHAKE: NOT_RELINKED_TTL_MS,
  REMOTE_HOST: NOT_RELINKED_TTL_MS,
  ADDRESS: NOT_RELINKED_TTL_MS,
  STRANGER: STRANGER_TTL_MS,
  SILENT: SILENT_TTL_MS,
}

/** A listener that answers for itself, in another process or thread. */
export interface ChannelRoute {
  readonly channel: SocketChannel
  /** What a CONNECT says (`Reached.address`). */
  readonly address: string
  readonly group?: undefined
  readonly reason?: undefined
  /** How many listeners the peer had closed when it was asked for a connection that this one accepted. */
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

/** Whether a reason is worth remembering. */
export function lasts(reason: FallbackReason): boolean {
  return TTL_MS[reason.code] !== undefined
}

export class Routes {
  readonly #routes = new Map<string, Route>()
  /** What was asked for last: to make the key of a plain server takes longer than the rest of what we do to its connection. */
  #last: { readonly host: string; readonly port: number; readonly route: Route } | undefined

  /** What is known about a server, by the address or the name that the program uses, and is not stale. */
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

  rememberChannel(host: string, port: number, { channel, address }: Reached): ChannelRoute {
    const route = { channel, address, listenersClosed: undefined }
    this.#remember(host, port, route)
    return route
  }

  /** The workers behind a listener that they share. */
  groupOf(host: string, port: number): WorkerGroup {
    const { group } = this.find(host, port) ?? {}
    if (group !== undefined) return group
    const made = new WorkerGroup()
    this.#remember(host, port, { group: made })
    return made
  }

  /**
   * To be called once a TCP connection is made: somebody is there, but not by the fast way. False if another connect has found
   * a channel meanwhile, which says more.
   */
  rememberReason(host: string, port: number, reason: FallbackReason): boolean {
    const codeTtlMs = TTL_MS[reason.code]
    const known = this.find(host, port)
    if (codeTtlMs === undefined || known?.channel !== undefined || known?.group !== undefined) return false
    const ttlMs = reason.mayPass === true ? Math.min(codeTtlMs, HUNG_UP_TTL_MS) : codeTtlMs
    this.#remember(host, port, { reason, expiresMs: performance.now() + ttlMs })
    return true
  }

  /** Nobody listens there: the kernel is asked at once, next time, and not whoever may be at the hashed ports. */
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
    // Channels that have ended are not kept until somebody asks for just them.
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
  if (route.channel !== undefined) return !route.channel.isOpen
  if (route.group !== undefined) return route.group.isEmpty
  return route.expiresMs < performance.now()
}

function keyOf(host: string, port: number): string {
  return `${host} ${port}`
}
