import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { markOwn } from '../../nic/index.ts'
import { reasonAgainstFastWay } from '../connect/fast-way.ts'
import { decideListener } from '../connect/listener-policy.ts'
import {
  countTcpAccepted,
  type FastServer,
  publish,
  withdraw,
  yieldHashedPort,
} from '../connect/listeners.ts'
import { showSlowListener } from '../connect/slow-listeners.ts'
import type { Binding } from '../host/listener-binding.ts'
import { systemError } from '../host/socket-errors.ts'
import { RequiredError } from '../policy/required-error.ts'
import { type FallbackReason, fallbackReason } from '../reasons.ts'
import { statusPage } from '../status/status-page.ts'
import { showAccepted } from '../status/tcp-rows.ts'
import type { SocketStream } from '../stream/socket-channel.ts'
import type { MessageSocket } from './message-socket.ts'
import { rawPeers } from './raw-peers.ts'
import {
  assertOptions,
  assertSignal,
  forgiveGetters,
  type Pollable,
  type RawSocket,
  type ReadinessQueue,
} from './raw-socket.ts'
import { type Made, type SocketType, socketType } from './socket-type.ts'

/** `listen` offers neither option. */
const ORDINARY: Binding = { ipv6Only: false, isPortShared: false }

/** Node's default. */
const BACKLOG_DEFAULT = 511

export interface ListenOptions {
  /** 0, the default: the kernel chooses one. */
  readonly port?: number
  /** As for `net.Server.listen`. */
  readonly host?: string
  /** The most connections that wait to be accepted; more are reset. */
  readonly backlog?: number
  /** `datagram`: its connections are message sockets, at both ends. */
  readonly type?: 'stream'
}

export interface ListenMessagesOptions extends Omit<ListenOptions, 'type'> {
  readonly type: 'datagram'
}

interface Waiter<S> {
  readonly resolve: (socket: S) => void
  readonly reject: (error: unknown) => void
}

/** Listens. Rejects as `node:net` does: `EADDRINUSE`, `EACCES`. */
export function listen(options?: ListenOptions): Promise<RawServer>
export function listen(options: ListenMessagesOptions): Promise<RawServer<MessageSocket>>
export async function listen(
  options: ListenOptions | ListenMessagesOptions = {},
): Promise<RawServer | RawServer<MessageSocket>> {
  assertOptions(options)
  const type = socketType(options.type)
  const { port = 0, host, backlog = BACKLOG_DEFAULT } = options
  if (!Number.isInteger(backlog) || backlog < 1) {
    const error = new RangeError(`backlog must be a positive integer, not ${String(backlog)}`)
    throw Object.assign(error, { code: 'ERR_OUT_OF_RANGE' })
  }
  const shadow = new net.Server({ allowHalfOpen: true }) as FastServer
  markOwn(shadow)
  yieldHashedPort(port)
  shadow.listen({ port, backlog, ...(host === undefined ? {} : { host }) })
  await once(shadow, 'listening')
  const server = new RawServer(shadow, backlog, type as SocketType<RawSocket>)
  try {
    server.publish()
    return server
  } catch (error) {
    server.close()
    throw error
  }
}

/**
 * A listener whose connections wait to be accepted. Clients that cannot be fast, or are not relinked, connect to its
 * ordinary TCP listener.
 */
export class RawServer<S extends RawSocket | MessageSocket = RawSocket>
  implements Pollable, AsyncIterable<S>
{
  static {
    forgiveGetters(RawServer.prototype, object => #shadow in object)
  }

  readonly #shadow: FastServer
  readonly #backlog: number
  readonly #type: SocketType<S>
  readonly #arrived: Made<S>[] = []
  readonly #waiters: Waiter<S>[] = []
  #queue: ReadinessQueue | undefined
  #isClosed = false
  /** The policy requires the fast way: clients that come by TCP are reset. */
  #isFastOnly = false

  /** Use `listen`. */
  constructor(shadow: FastServer, backlog: number, type: SocketType<S>) {
    this.#type = type
    this.#shadow = shadow
    this.#backlog = backlog
    // A failed accept, for lack of descriptors say, concerns its client only: the server goes on.
    shadow.on('error', () => {})
    shadow.on('connection', socket => {
      if (this.#isFastOnly) return void socket.resetAndDestroy()
      showAccepted(socket)
      countTcpAccepted(shadow)
      this.#arrive(type.makeTcp(socket, fallbackReason('ACCEPTED')))
    })
  }

  /** For `listen`: makes the server reachable by the fast way, if the policy allows. */
  publish(): void {
    const { use, because } = decideListener(this.#shadow)
    this.#isFastOnly = use === 'require'
    const known = use === 'tcp' ? fallbackReason('POLICY', because) : reasonAgainstFastWay()
    if (known !== undefined) showSlowListener(this.#shadow, known.code)
    const reason = known ?? this.#offer()
    if (reason !== undefined) statusPage().countFallback(reason.code)
    if (reason !== undefined && this.#isFastOnly)
      throw new RequiredError(reason, { ...this.address, because })
  }

  #offer(): FallbackReason | undefined {
    const code = publish(this.#shadow, ORDINARY, rawPeers(), {
      hasRoom: () => !this.#isClosed && (this.#arrived.length < this.#backlog || this.#waiters.length > 0),
      accept: (stream: SocketStream) => {
        const socket = this.#type.makeFast()
        socket.adopt(stream)
        this.#arrive(socket)
      },
    })
    return code === undefined ? undefined : fallbackReason(code)
  }

  /** A connection may arrive on any channel of the thread: the queue polls them all. */
  polledChannel(): undefined {}

  /** The address and port on which the server listens. Throws `EBADF` if it is closed. */
  get address(): AddressInfo {
    if (this.#isClosed) throw systemError('EBADF', 'getsockname')
    return this.#shadow.address() as AddressInfo
  }

  /** A connection waits to be accepted. */
  get isReadable(): boolean {
    return this.#arrived.length > 0
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /**
   * The next connection. Rejects with `EBADF` if the server is closed, and with `ECANCELED` if it is closed during the
   * wait.
   */
  accept(options: { readonly signal?: AbortSignal } = {}): Promise<S> {
    try {
      assertOptions(options)
      assertSignal(options.signal)
    } catch (error) {
      return Promise.reject(error)
    }
    const { signal } = options
    if (signal?.aborted) return Promise.reject(signal.reason)
    if (this.#isClosed) return Promise.reject(systemError('EBADF', 'accept'))
    const socket = this.#arrived.shift()
    if (socket !== undefined) return Promise.resolve(socket)
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        this.#waiters.splice(this.#waiters.indexOf(waiter), 1)
        reject(signal?.reason)
      }
      const waiter: Waiter<S> = {
        resolve: socket => {
          signal?.removeEventListener('abort', abort)
          resolve(socket)
        },
        reject: error => {
          signal?.removeEventListener('abort', abort)
          reject(error)
        },
      }
      signal?.addEventListener('abort', abort, { once: true })
      this.#waiters.push(waiter)
    })
  }

  /** The next connection that has arrived, or undefined. */
  tryAccept(): S | undefined {
    return this.#arrived.shift()
  }

  /** Connections as they arrive, until the server is closed. */
  async *[Symbol.asyncIterator](): AsyncGenerator<S, void> {
    while (!this.#isClosed) {
      try {
        yield await this.accept()
      } catch (error) {
        if (!this.#isClosed) throw error
      }
    }
  }

  /** Stops listening. Resets connections that were not accepted; accepted ones go on. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    withdraw(this.#shadow)
    this.#shadow.close()
    for (const socket of this.#arrived.splice(0)) socket.close(true)
    for (const { reject } of this.#waiters.splice(0)) reject(systemError('ECANCELED', 'accept'))
    this.#queue?.remove(this)
  }

  look(): void {}

  watch(queue: ReadinessQueue | undefined): void {
    this.#queue = queue
    if (this.isReadable) queue?.handleReadable(this)
  }

  /** Nothing to do: a listening server keeps the program alive anyway. */
  setAwaited(): void {}

  #arrive(socket: Made<S>): void {
    const waiter = this.#waiters.shift()
    if (waiter !== undefined) return waiter.resolve(socket)
    if (this.#isClosed || this.#arrived.length >= this.#backlog) return socket.close(true)
    this.#arrived.push(socket)
    this.#queue?.handleReadable(this)
  }
}
