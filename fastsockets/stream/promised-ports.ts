/**
 * Client ports and windows that a server promises before it is asked. A client that takes itself for connected, because the
 * server is busy, has its port all the same (decision 0006), and may write as much as it could to a kernel.
 *
 * Each CONNECT uses up the oldest promise, if there is one, whatever the answer; each ACCEPT promises up to four more ports,
 * each with the window of that ACCEPT. Messages keep their order both ways, so both sides know which CONNECT has which promise.
 */
import type { PortShare } from '../host/synthetic-ports.ts'
import type { Stream } from './stream.ts'
import { PORTS_PROMISED_MAX } from './stream-layout.ts'
import type { UnreadShare } from './unread-budget.ts'

const PORT_MAX = 0xffff
/** In place of a stream's promised port: it has asked, and waits here for an answer or a promise. */
const PORT_AWAITED = -1

export interface Promised {
  readonly port: number
  /** Bytes that the client may have under way before the answer. */
  readonly window: number
}

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

  /** What the CONNECT that is handled now was promised; zeros if nothing. */
  dequeue(): Promised {
    const promised = this.promises.shift() ?? NOTHING
    this.channel.unread.noteGranted(-promised.window)
    return promised
  }

  /** The ports of up to four more; the rest are 0. */
  promise(window: number): readonly [number, number, number, number] {
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
    for (let left = this.promises.length; left > 0; left--) this.channel.portShare.release(this.dequeue().port)
  }
}

/** It is promised, or there is none. */
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
  /** Those that have asked, in that order, and have no promise yet. */
  private readonly asked: Stream[] = []
  /** For those who ask next. */
  private readonly promises: Promised[] = []

  handleAsked(stream: Stream): void {
    const promised = this.promises.shift()
    if (promised !== undefined) return keepPromise(stream, promised)
    stream.promisedPort = PORT_AWAITED
    this.asked.push(stream)
  }

  /** False if others have asked before it: an answer out of order would leave them here for ever. */
  handleAnswered(stream: Stream): boolean {
    if (stream.promisedPort !== PORT_AWAITED) return true
    if (this.asked[0] !== stream) return false
    this.asked.shift()
    stream.promisedPort = 0
    return true
  }

  /**
   * False if it is not its turn, was promised another port or a larger window, or if such ports cannot be promised; 0 is no
   * promise.
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
    const stream = this.asked.shift()
    if (stream === undefined) this.promises.push(promised)
    else keepPromise(stream, promised)
    return true
  }
}
