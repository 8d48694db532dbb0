/** Decides, for each connect, between a fast channel and TCP, and carries it out under the socket's own eyes. */
import type net from 'node:net'
import { reachableOwnAddress, sourceAddressFor } from './addresses.ts'
import type { Dialer, FastHandle, FastSocket } from './fast-handle-contract.ts'
import { findListener } from './listeners.ts'
import type { ConnectRequest, NodeInternals, TcpHandle } from './node-internals.ts'
import { type Peers, reasonOfRefusal } from './peers.ts'
import { type FallbackCode, type FallbackReason, fallbackReason } from './reasons.ts'
import { SocketChannel } from './socket-channel.ts'
import { recordFallback, recordFast } from './transport.ts'

/** How long a server counts as not relinked after it has accepted a TCP connection. */
const NOT_RELINKED_TTL_MS = 2000
/** The same for a stranger on the hashed port. */
const STRANGER_TTL_MS = 60_000
/** Somebody who was silent may be a server of ours that was busy. */
const SILENT_TTL_MS = 5000
const ROUTES_MAX = 1024

type Route =
  | { readonly channel: SocketChannel; readonly reason?: undefined }
  | { readonly channel?: undefined; readonly reason: FallbackReason; readonly expiresMs: number }

interface Attempt {
  readonly request: ConnectRequest
  readonly address: string
  readonly port: number
  readonly family: 4 | 6
  /** The listener is in this thread. */
  isOwn: boolean
  /** The route that was tried came from memory: it may be stale, and deserves one fresh look. */
  isRetry: boolean
}

export class RouteDialer implements Dialer {
  readonly #peers: Peers
  readonly #internals: NodeInternals
  readonly #routes = new Map<string, Route>()
  readonly #attempts = new WeakMap<FastHandle, Attempt>()
  /** The socket whose handle is being replaced by TCP: install.ts must not make that one fast again. */
  demoting: net.Socket | undefined

  constructor(peers: Peers, internals: NodeInternals) {
    this.#peers = peers
    this.#internals = internals
  }

  /**
   * Why a connect to this host, by the name that the program uses, need not be tried the fast way now; undefined if it
   * should be. A server that is known not to be relinked costs nothing but this question.
   */
  knownReason(host: string, port: unknown): FallbackReason | undefined {
    return this.#route(host, port)?.reason
  }

  dial(handle: FastHandle, request: ConnectRequest, address: string, port: number, family: 4 | 6): number {
    const target = reachableOwnAddress(address)
    if (target === undefined)
      return this.#demote(handle, request, address, port, family, fallbackReason('REMOTE_HOST'))
    const attempt: Attempt = { request, address: target, port, family, isOwn: false, isRetry: false }
    this.#attempts.set(handle, attempt)
    if (findListener(port, target, family) !== undefined) {
      attempt.isOwn = true
      if (this.#open(handle, this.#peers.ownChannel(), attempt)) return 0
    }
    attempt.isOwn = false
    const route = this.#route(target, port)
    if (route?.channel !== undefined && this.#open(handle, route.channel, attempt)) return 0
    if (route?.reason !== undefined) return this.#demote(handle, request, target, port, family, route.reason)
    void this.#explore(handle, attempt)
    return 0
  }

  handleRefused(handle: FastHandle, refusal: number | undefined): void {
    const attempt = this.#attempts.get(handle)
    if (attempt === undefined || handle.isClosed) return
    if (attempt.isOwn) {
      // The listener was there when we called, and closed before it accepted: to TCP that is a connection that ends.
      handle.finishConnect(0)
      handle.handleEnd()
      return
    }
    handle.dropStream()
    this.#routes.delete(keyOf(attempt.address, attempt.port))
    if (attempt.isRetry) return this.#demoteLater(handle, attempt, fallbackReason(reasonOfRefusal(refusal)))
    // Another process may have taken the port meanwhile.
    attempt.isRetry = true
    void this.#explore(handle, attempt)
  }

  demoteToBind(handle: FastHandle): TcpHandle {
    return this.#replace(handle, fallbackReason('LOCAL_ADDRESS'))
  }

  async #explore(handle: FastHandle, attempt: Attempt): Promise<void> {
    const { address, port, family } = attempt
    const found = await this.#peers.reach(address, port, family)
    if (handle.isClosed) return
    if (found instanceof SocketChannel) {
      this.#remember(address, port, { channel: found })
      if (this.#open(handle, found, attempt)) return
      return this.#demoteLater(handle, attempt, fallbackReason('LIMIT'))
    }
    this.#demoteLater(handle, attempt, found)
  }

  /** Asks for a connection over `channel`; the answer comes to the handle. */
  #open(handle: FastHandle, channel: SocketChannel, attempt: Attempt): boolean {
    const { address, port, family } = attempt
    const stream = channel.connect(handle, port, address, family)
    if (stream === undefined) return false
    stream.addresses = {
      address,
      source: sourceAddressFor(address),
      family: family === 6 ? 'IPv6' : 'IPv4',
      serverPort: port,
      clientPort: 0,
    }
    handle.adopt(stream)
    if (handle.socket !== undefined) recordFast(handle.socket, channel.transport)
    return true
  }

  #demoteLater(handle: FastHandle, attempt: Attempt, reason: FallbackReason): void {
    const { request, address, port, family } = attempt
    handle.run(() => {
      const status = this.#demote(handle, request, address, port, family, reason)
      if (status !== 0) request.oncomplete?.(status, handle.successor as object, request, false, false)
    })
  }

  #demote(
    handle: FastHandle,
    request: ConnectRequest,
    address: string,
    port: number,
    family: 4 | 6,
    reason: FallbackReason,
  ): number {
    this.#rememberOnceConnected(handle, request, address, port, reason)
    const tcp = this.#replace(handle, reason)
    return family === 6 ? tcp.connect6(request, address, port) : tcp.connect(request, address, port)
  }

  /** Gives the socket a TCP handle in place of ours, which is over. */
  #replace(handle: FastHandle, reason: FallbackReason): TcpHandle {
    const socket = handle.socket as FastSocket
    const tcp = this.#internals.createTcp()
    recordFallback(socket, reason)
    handle.abandonConnect()
    this.demoting = socket
    // Node would also reset the stream's state here, and forget that the program has called `end()` meanwhile.
    Object.defineProperty(socket, '_undestroy', { value: () => {}, configurable: true })
    try {
      const reinitialize = (socket as unknown as Record<symbol, (handle: object) => void>)[
        this.#internals.reinitialize
      ]
      reinitialize?.call(socket, tcp)
    } finally {
      Reflect.deleteProperty(socket, '_undestroy')
      this.demoting = undefined
    }
    if (handle.isUnreferenced) tcp.unref()
    handle.successor = tcp
    return tcp
  }

  /**
   * A server that is there, but not by the fast way, is not asked again for a while; neither under its address nor
   * under the name that the program used.
   */
  #rememberOnceConnected(
    handle: FastHandle,
    request: ConnectRequest,
    address: string,
    port: number,
    reason: FallbackReason,
  ): void {
    const ttlMs = TTL_MS[reason.code]
    if (ttlMs === undefined) return
    const { oncomplete } = request
    request.oncomplete = (status, ...rest) => {
      if (status === 0) {
        const route = { reason, expiresMs: performance.now() + ttlMs }
        this.#remember(address, port, route)
        if (handle.host !== undefined) this.#remember(handle.host, port, route)
      }
      oncomplete?.(status, ...rest)
    }
  }

  #route(address: string, port: unknown): Route | undefined {
    const key = keyOf(address, port)
    const route = this.#routes.get(key)
    if (route === undefined) return undefined
    const isStale = route.channel === undefined ? route.expiresMs < performance.now() : !route.channel.isOpen
    if (!isStale) return route
    this.#routes.delete(key)
    return undefined
  }

  #remember(address: string, port: number, route: Route): void {
    if (this.#routes.size >= ROUTES_MAX) {
      const [oldest] = this.#routes.keys()
      if (oldest !== undefined) this.#routes.delete(oldest)
    }
    this.#routes.set(keyOf(address, port), route)
  }
}

/** Reasons that stay true for a while. The others are decided anew each time. */
const TTL_MS: Partial<Record<FallbackCode, number>> = {
  NOT_RELINKED: NOT_RELINKED_TTL_MS,
  VERSION: NOT_RELINKED_TTL_MS,
  OTHER_USER: NOT_RELINKED_TTL_MS,
  OTHER_HOST: NOT_RELINKED_TTL_MS,
  HANDSHAKE: NOT_RELINKED_TTL_MS,
  REMOTE_HOST: NOT_RELINKED_TTL_MS,
  STRANGER: STRANGER_TTL_MS,
  SILENT: SILENT_TTL_MS,
}

function keyOf(address: string, port: unknown): string {
  return `${address} ${port}`
}
