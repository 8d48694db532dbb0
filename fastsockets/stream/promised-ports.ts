/**
 * Client ports and windows that a server promises in advance. A client that presumes its connection, because the server
 * is busy, then knows its port (decision 0006), and may write as much as it could to a kernel.
 *
 * Each CONNECT uses up the oldest promise, if there is one, whatever the answer; each ACCEPT promises up to four more ports,
 * each with the window of that ACCEPT. The first CONNECT of a channel has a promised window without a port. Messages keep their order both ways, so both sides know which CONNECT has which promise.
 */
import type { PortShare } from '../host/synthetic-ports.ts'
import type { Stream } from './stream.ts'
import { EARLY_WINDOW, PORTS_PROMISED_MAX, SHRUNK_WINDOW, WINDOW_MAX } from './stream-layout.ts'
import type { UnreadShare } from './unread-budget.ts'

const PORT_MAX = 0xffff
/** In place of a promised port: the stream has asked, and waits for an answer or a promise. */
const PORT_AWAITED = -1

export interface Promised {
  readonly port: number
  /** Bytes that the client may have under way before the answer. */
  readonly window: number
}

const NO_PORTS: readonly [number, number, number, number] = [0, 0, 0, 0]
/** Nothing is promised. */
const NOTHING: Promised = { port: 0, window: 0 }

interface PromisingChannel {
  readonly portShare: PortShare
  readonly unread: UnreadShare
}

/** The server's side. Promised windows count as granted. */
export class PromisedPorts {
  private readonly promises: Promised[] = []
  private readonly max: number
  private readonly channel: PromisingChannel

  constructor(max: number, channel: PromisingChannel) {
    this.max = max
    this.channel = channel
  }

  /** The window that the peer's first CONNECT is promised, before any other message; 0 is no promise. */
  promiseFirst(): number {
    const window = this.max === 0 ? 0 : this.channel.unread.windowToGrant()
    if (window <= EARLY_WINDOW) return 0
    this.promises.push({ port: 0, window })
    this.channel.unread.noteGranted(window)
    return window
  }

  /** The promise for the CONNECT that is being handled; zeros if there is none. */
  dequeue(): Promised {
    const promised = this.promises.shift() ?? NOTHING
    this.channel.unread.noteGranted(-promised.window)
    return promised
  }

  /**
   * Promises up to four more ports; the rest are 0. It promises none while a new socket would get less than half of this
   * window, above the least: a promised window is kept, so windows that promise others of their size would never shrink.
   */
  promise(window: number): readonly [number, number, number, number] {
    const granted = this.channel.unread.windowToGrant()
    if (2 * (granted - SHRUNK_WINDOW) < window - SHRUNK_WINDOW) return NO_PORTS
    return [this.add(window), this.add(window), this.add(window), this.add(window)]
  }

  private add(window: number): number {
    if (this.promises.length >= this.max) return 0
    const port = this.channel.portShare.allocate()
    if (port === 0) return 0
    this.promises.push({ port, window })
    this.channel.unread.noteGranted(window)
    return port
  }

  clear(): void {
    for (let left = this.promises.length; left > 0; left--)
      this.channel.portShare.release(this.dequeue().port)
  }
}

/** True if the port was promised, or there is none. */
export function knowsItsPort({ promisedPort, unixPath }: Stream): boolean {
  return promisedPort > 0 || unixPath !== undefined
}

function keepPromise(stream: Stream, { port, window }: Promised): void {
  stream.promisedPort = port
  stream.keepEarlyWindow(window)
  if (stream.isPresumed && stream.addresses !== undefined) stream.addresses.clientPort = port
}

/** The client's side. */
export class AwaitedPorts {
  /** Streams that have asked, in that order, and have no promise yet. */
  private readonly asked: Stream[] = []
  /** Promises for later requests. */
  private readonly promises: Promised[] = []

  /** False if the window that the peer promises for the first request is impossible. */
  handleFirst(window: number): boolean {
    if (window === 0) return true
    if (window < EARLY_WINDOW || window > WINDOW_MAX) return false
    this.keep({ port: 0, window })
    return true
  }

  handleAsked(stream: Stream): void {
    const promised = this.promises.shift()
    if (promised !== undefined) return keepPromise(stream, promised)
    stream.promisedPort = PORT_AWAITED
    this.asked.push(stream)
  }

  /** False if an earlier request is not answered: an answer out of order would leave it waiting for ever. */
  handleAnswered(stream: Stream): boolean {
    if (stream.promisedPort !== PORT_AWAITED) return true
    if (this.asked[0] !== stream) return false
    this.asked.shift()
    stream.promisedPort = 0
    return true
  }

  /**
   * False if the answer is out of order, differs from the promised port, has a smaller window than promised, or
   * promises impossible ports. Port 0 is no promise.
   */
  handleAccepted(stream: Stream, port: number, window: number, promises: readonly number[]): boolean {
    if (!this.handleAnswered(stream) || window < stream.earlyWindow) return false
    const isAsPromised = stream.promisedPort === 0 || stream.promisedPort === port
    return isAsPromised && promises.every(promise => this.add({ port: promise, window }))
  }

  private add(promised: Promised): boolean {
    const { port } = promised
    if (port === 0) return true
    if (port < 0 || port > PORT_MAX || this.promises.length >= PORTS_PROMISED_MAX) return false
    this.keep(promised)
    return true
  }

  /** For the first request without a promise, or the next one. */
  private keep(promised: Promised): void {
    const stream = this.asked.shift()
    if (stream === undefined) this.promises.push(promised)
    else keepPromise(stream, promised)
  }
}
