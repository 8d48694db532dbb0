/**
 * Sends the datagrams of one socket to one address over a stream: the sending end of a pair (datagram-layout.ts). Every method
 * of `StreamSink` runs in the poller's turn.
 *
 *   asking    the CONNECT is under way
 *   probing   the receiver waits for the PROBE
 *   fast      datagrams go over the stream
 *   closed    the kernel sends
 */
import { copyBytes } from '../../nic/index.ts'
import { clearTimeout, setTimeout } from '../../nic/real-time.ts'
import { allocateFresh } from '../host/fresh-memory.ts'
import type { SocketStream } from '../stream/socket-channel.ts'
import type { StreamSink } from '../stream/stream-sink.ts'
import {
  COUNT_SIZE,
  DATAGRAM_MAX,
  DATAGRAM_OVERHEAD,
  HEAD_SIZE,
  LIMIT_MAX,
  PROBE,
  REPORTS_PER_LIMIT,
  STOP,
  SWITCH,
} from './datagram-layout.ts'

/** Time for the PROBE to be answered: a full receiver may lose it. */
const PROBE_MS = 1000

const count = new Uint8Array(COUNT_SIZE)

/** What a sender needs of its socket. */
export interface SendingSocket {
  /** Sends a marker through the kernel; false if the kernel does not take it at once. */
  sendMarker(kind: number): boolean
  /** The pair is over, or has never been. `wasFast`: datagrams have gone over the stream. */
  handleOver(wasFast: boolean): void
}

export class DatagramSender implements StreamSink {
  readonly isReading = true
  state: 'asking' | 'probing' | 'fast' | 'closed' = 'asking'

  readonly #socket: SendingSocket
  /** Set right after the CONNECT. */
  stream: SocketStream | undefined
  /** What may be under way; what of all that was sent counts, and what of it the receiver has taken. They wrap. */
  #room = 0
  #sentSize = 0
  #takenSize = 0
  /** Datagrams that found no room in the ring. */
  readonly #waiting: Uint8Array[] = []
  #waitingSize = 0
  #isClosing = false
  #timer: NodeJS.Timeout | undefined

  constructor(socket: SendingSocket) {
    this.#socket = socket
  }

  /** Takes one datagram: sends it, keeps a copy, or drops it because the receiver is full. False: the kernel is to send it. Hot. */
  send(bytes: Uint8Array): boolean {
    const { stream } = this
    if (stream === undefined || stream.refusesWrites) {
      this.#end()
      return false
    }
    stream.counts.countDatagram()
    const size = bytes.length + DATAGRAM_OVERHEAD
    if ((this.#sentSize - this.#takenSize) >>> 0 > this.#room - size) {
      stream.counts.countDropped(1)
      return true
    }
    this.#sentSize = (this.#sentSize + size) >>> 0
    if (this.#waitingSize > 0 || !stream.trySendMessage(bytes.length, bytes)) this.#keep(stream, bytes)
    return true
  }

  /** Datagrams that were sent are still delivered, as those in a kernel's queue. */
  close(): void {
    if (this.#isClosing) return
    this.#isClosing = true
    if (this.#waitingSize === 0) this.#end()
  }

  // The methods of `StreamSink`.

  handleConnected(): void {
    const { stream } = this
    if (
      stream === undefined ||
      this.#isClosing ||
      stream.channel.channel.mediumMax < HEAD_SIZE + DATAGRAM_MAX
    )
      return this.#end()
    this.state = 'probing'
    this.#timer = setTimeout(() => this.#end(), PROBE_MS).unref()
    if (!this.#socket.sendMarker(PROBE)) this.#end()
  }

  handleRefused(): void {
    this.#end()
  }

  /** A LIMIT. */
  place(bytes: Uint8Array, offset: number, length: number): number {
    if (length !== HEAD_SIZE + COUNT_SIZE || (this.state !== 'probing' && this.state !== 'fast')) {
      this.#end()
      return length
    }
    const limit = readHead(bytes, offset)
    if (limit === STOP) {
      this.close()
      return length
    }
    this.#room = Math.floor(Math.min(limit, LIMIT_MAX) * (1 + 1 / REPORTS_PER_LIMIT))
    this.#takenSize = readHead(bytes, offset + HEAD_SIZE)
    if (this.state === 'fast') return length
    clearTimeout(this.#timer)
    // Without the SWITCH the receiver would hold datagrams back.
    if (this.#socket.sendMarker(SWITCH)) this.state = 'fast'
    else this.#end()
    return length
  }

  handleData(bytes: Buffer): number {
    return this.place(bytes, 0, bytes.length)
  }

  /** The ring may have room; false if it has too little. */
  handleRoom(): boolean {
    const { stream } = this
    let count = 0
    while (count < this.#waiting.length) {
      const bytes = this.#waiting[count] as Uint8Array
      if (stream?.trySendMessage(bytes.length, bytes) !== true) break
      this.#addWaiting(-bytes.length - DATAGRAM_OVERHEAD)
      count++
    }
    if (count > 0) this.#waiting.splice(0, count)
    if (this.#waitingSize > 0) return false
    if (this.#isClosing) this.#end()
    return true
  }

  handleEnd(): void {
    this.#end()
  }

  handleError(): void {
    this.#end()
  }

  handleWritten(): void {}

  handleSent(): void {}

  handleShutdown(): void {}

  #keep(stream: SocketStream, bytes: Uint8Array): void {
    const size = bytes.length + DATAGRAM_OVERHEAD
    if (stream.channel.unread.isOverBudget()) {
      stream.counts.countDropped(1)
      this.#sentSize = (this.#sentSize - size) >>> 0
      return
    }
    const copy = allocateFresh(bytes.length)
    copyBytes(bytes, 0, copy, 0, bytes.length)
    this.#waiting.push(copy)
    this.#addWaiting(size)
    stream.scheduleSend()
  }

  #addWaiting(size: number): void {
    this.#waitingSize += size
    this.stream?.channel.unread.noteKept(size)
  }

  #end(): void {
    if (this.state === 'closed') return
    const wasFast = this.state === 'fast'
    this.state = 'closed'
    clearTimeout(this.#timer)
    this.stream?.counts.countDropped(this.#waiting.length)
    this.#waiting.length = 0
    this.#addWaiting(-this.#waitingSize)
    this.stream?.close(false)
    this.#socket.handleOver(wasFast)
  }
}

/** Sends a LIMIT; false if there is no room for it now. */
export function sendLimit(stream: SocketStream, limit: number, takenSize: number): boolean {
  for (let i = 0; i < COUNT_SIZE; i++) count[i] = takenSize >>> (8 * i)
  return stream.trySendMessage(limit, count)
}

/** The u32 before a LIMIT's nothing or a DATAGRAM's bytes. */
export function readHead(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] as number) |
      ((bytes[at + 1] as number) << 8) |
      ((bytes[at + 2] as number) << 16) |
      ((bytes[at + 3] as number) << 24)) >>>
    0
  )
}
