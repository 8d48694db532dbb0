/**
 * Two streams, joined by two queues of messages, in one thread: no driver, no clock, no process. The test decides when
 * messages arrive and when each side has a turn. Each side checks what its stream says against a model of TCP.
 */

import { StreamCounts } from '../../../fastsockets/status/stream-counts.ts'
import { Stream, type StreamChannel } from '../../../fastsockets/stream/stream.ts'
import type { MessageOut, StreamHost } from '../../../fastsockets/stream/stream-host.ts'
import {
  CLOSE,
  CONSUMED,
  DATA,
  RD_COMPL,
  SRC_AVAIL,
  THRESHOLD_MIN,
} from '../../../fastsockets/stream/stream-layout.ts'
import type { StreamErrorCode, StreamSink } from '../../../fastsockets/stream/stream-sink.ts'
import type { PeerMemory } from '../../../fastsockets/stream/zcopy/zcopy.ts'
import { CLOSED, NO_RESOURCE } from '../../../nic/index.ts'
import type { Random } from '../../support/random.ts'

export const SEGMENT_MAX = 4096
/** Bytes of payload in one queue, beyond which a send is refused. */
const QUEUE_MAX = 4 * SEGMENT_MAX
/** Messages in one queue. */
const MESSAGES_MAX = 64

const REVOKED = new Uint8Array(0)

interface Message {
  readonly handler: number
  readonly words: readonly number[]
  readonly payload: Buffer
}

/** The byte at `position` of the bytes that a side writes. */
const byteAt = (position: number, side: number): number =>
  (position * 7 + (position >> 8) + side * 101) & 0xff

function patterned(position: number, length: number, side: number): Buffer {
  const bytes = Buffer.allocUnsafe(length)
  for (let i = 0; i < length; i++) bytes[i] = byteAt(position + i, side)
  return bytes
}

/** One side: the program, its stream, and what the stream needs. */
export class Side implements StreamSink {
  readonly stream: Stream
  /** Messages for this side. */
  readonly arriving: Message[] = []
  peer!: Side
  isReading = false
  isOverBudget = false
  /** TCP has carried the other direction to its end. */
  hasEnded = false
  isForgotten = false
  /** Bytes that the program has written, and read. */
  wrote = 0
  read = 0
  /** `write` returned false, and its callback has not come. */
  isWaiting = false
  hasShutDown = false
  /** The stream said that nothing follows: the end, or an error. */
  ended: 'end' | StreamErrorCode | undefined
  hasClosed = false
  /** Closed by a reset, or with bytes of the peer unread, or the peer wrote after it. */
  isHarsh = false
  /** Bytes that the stream keeps in its process. */
  kept = 0
  /** Memory on offer to the peer, by its key. */
  readonly registered = new Map<number, Uint8Array>()
  /** Bytes fetched from the peer's memory. */
  fetched = 0
  /** The program copies what it is given, and may take a part of it. */
  readonly copies: boolean
  private readonly number: number
  private readonly random: Random
  private readonly link: StreamChannel & { isOpen: boolean }
  private isSendDue = false
  private isDeliveryDue = false
  private turns = 0
  private readonly pieces: Buffer[] = []

  constructor(number: number, random: Random, window: number) {
    this.number = number
    this.random = random
    this.copies = random.chance(0.5)
    const host: StreamHost = {
      allocate: length => Buffer.alloc(length),
      lookCount: () => this.turns,
      drainTicks: () => {},
      reportsLateResets: true,
    }
    const deliveries = {
      turn: 0,
      schedule: () => {
        this.isDeliveryDue = true
      },
      queue: (_stream: Stream, bytes: Uint8Array, offset: number, length: number) => {
        this.pieces.push(Buffer.from(bytes.subarray(offset, offset + length)))
        this.stream.queuedCount++
      },
      endRun: () => {},
    }
    this.link = {
      isOpen: true,
      isLoopback: false,
      isRaw: false,
      host,
      unread: {
        noteKept: length => {
          this.kept += length
        },
        isOverBudget: () => this.isOverBudget,
      },
      segmentMax: SEGMENT_MAX,
      smallMax: SEGMENT_MAX,
      offerMin: random.chance(0.5) ? THRESHOLD_MIN : Number.POSITIVE_INFINITY,
      memory: this.openMemory(),
      noteOffer: () => {},
      deliveries,
      scheduleSend: () => {
        this.isSendDue = true
      },
      forget: () => {
        this.isForgotten = true
      },
      ref: () => {},
      unref: () => {},
      show: () => {},
      hide: () => {},
    }
    const role = number === 0 ? 'client' : 'server'
    this.stream = new Stream(
      this.link,
      this.openOut(),
      number === 0 ? 1 : -1,
      role,
      window,
      new StreamCounts(),
    )
    this.stream.sink = this
    this.stream.isAsked = true
  }

  // What the program does.

  write(length: number): void {
    const { stream, peer } = this
    if (this.hasClosed || this.isWaiting || this.hasShutDown) return
    if (this.ended !== undefined && this.ended !== 'end') return
    if (stream.refusesWrites) {
      check(peer.hasClosed || !this.link.isOpen, 'a write is refused though the peer is there')
      return
    }
    if (peer.hasClosed) peer.isHarsh = true
    const bytes = patterned(this.wrote, length, this.number)
    this.wrote += length
    this.isWaiting = !stream.write([bytes])
    // The memory is the program's again.
    bytes.fill(0)
  }

  setReading(isReading: boolean): void {
    this.isReading = isReading
    if (isReading && !this.hasClosed) this.stream.startReading()
  }

  /** The process keeps more than it may, or not any more. */
  setOverBudget(isOverBudget: boolean): void {
    this.isOverBudget = isOverBudget
  }

  shutDown(): void {
    if (this.hasClosed || this.hasShutDown || this.stream.refusesWrites) return
    this.hasShutDown = true
    this.stream.shutdown()
  }

  close(isReset: boolean): void {
    if (this.hasClosed) return
    this.hasClosed = true
    this.isHarsh = isReset || this.isWaiting || this.read < this.peer.wrote
    this.stream.close(isReset)
  }

  // What the test lets happen.

  /** The first messages for this side arrive. */
  arrive(limit: number): void {
    for (let left = limit; left > 0 && this.arriving.length > 0; left--) {
      const { handler, words, payload } = this.arriving.shift() as Message
      if (this.isForgotten) continue
      const { stream } = this
      check(words[0] === stream.id, `a message for stream ${words[0]}`)
      const [, a = 0, b = 0, c = 0] = words
      let fault: string | undefined
      if (handler === DATA) fault = stream.handleData(a, b, c, payload, 0, payload.length)
      else if (handler === CONSUMED) fault = stream.handleConsumed(a)
      else if (handler === CLOSE) stream.handleClosed(a, b)
      else if (handler === SRC_AVAIL)
        fault = stream.handleConsumed(b) ?? stream.handleSourceAvailable(a, c, payload)
      else if (handler === RD_COMPL) fault = stream.handleReadCompleted(a) ?? stream.handleConsumed(b)
      else fault = `handler ${handler}`
      check(fault === undefined, `a stream refuses a message of another: ${fault}`)
      check(stream.waitingLength <= stream.window, `${stream.waitingLength} bytes wait in a smaller window`)
    }
  }

  turn(): void {
    const { stream } = this
    this.turns++
    if (this.isSendDue && !this.isForgotten) {
      this.isSendDue = false
      if (!stream.resume() && stream.state !== 'closed') this.isSendDue = true
    }
    ;(this.link.deliveries as { turn: number }).turn++
    if (this.isDeliveryDue && stream.queuedCount === 0) {
      this.isDeliveryDue = false
      stream.deliver()
    }
    for (const bytes of this.pieces.splice(0)) {
      stream.queuedCount--
      stream.deliverQueued(bytes)
    }
    // A socket is destroyed by its error.
    if (this.ended !== undefined && this.ended !== 'end') this.close(false)
  }

  get isIdle(): boolean {
    // A closed channel sends nothing any more.
    const isSendDue = this.isSendDue && this.link.isOpen && !this.isForgotten
    return this.arriving.length === 0 && this.pieces.length === 0 && !isSendDue && !this.isDeliveryDue
  }

  /** The channel is lost, and with it all but the first messages under way. */
  lose(kept: number, cause: Error | undefined): void {
    this.arriving.length = Math.min(this.arriving.length, kept)
    this.arrive(kept)
    this.link.isOpen = false
    if (!this.isForgotten) this.stream.handleChannelGone(cause, 'ECONNRESET')
  }

  get isLost(): boolean {
    return !this.link.isOpen
  }

  // What the stream says.

  handleData(bytes: Buffer): number {
    check(
      !this.hasClosed && this.isReading && this.ended === undefined,
      'data for a program that does not read',
    )
    // A program that reads into a buffer of its own may stop in the middle.
    const stops = this.copies && this.random.chance(0.1)
    const taken = stops ? this.random.within(0, bytes.length) : bytes.length
    const position = this.read
    check(position + bytes.length <= this.peer.wrote, 'more bytes than were written')
    for (let i = 0; i < bytes.length; i++)
      if (bytes[i] !== byteAt(position + i, this.peer.number)) fail(`byte ${position + i} is another`)
    if (taken < bytes.length) this.isReading = false
    this.read += taken
    return taken
  }

  handleEnd(): void {
    check(!this.hasClosed && this.ended === undefined, 'an end after the end')
    check(this.peer.hasShutDown || this.peer.hasClosed || this.isLost, 'an end that the peer has not made')
    if (!this.isLost && !this.peer.isHarsh)
      check(this.read === this.peer.wrote, 'an end before the last byte')
    this.ended = 'end'
  }

  handleError(code: StreamErrorCode, syscall: 'read' | 'write'): void {
    // The end of what the peer sends comes before the failure of what the peer does not read, and of the channel.
    const isOver = this.ended !== undefined && !(this.ended === 'end' && (syscall === 'write' || this.isLost))
    check(!this.hasClosed && !isOver, `${code} of a ${syscall} after ${this.ended}`)
    check(
      this.isLost || (this.peer.hasClosed && this.peer.isHarsh),
      `${code} though the peer has read all, and closed`,
    )
    this.ended = code
    this.isWaiting = false
  }

  handleWritten(): void {
    check(!this.hasClosed && this.isWaiting, 'the callback of a write that does not wait')
    this.isWaiting = false
  }

  handleSent(): void {}

  handleShutdown(): void {
    check(this.hasShutDown, 'the callback of a shutdown that was not asked for')
  }

  handleConnected(): void {}

  handleRefused(): void {
    fail('a refusal')
  }

  /** The peer's memory is read as it is at that time. Now and then none can be registered, or be read. */
  private openMemory(): PeerMemory {
    const { random } = this
    let keys = 0
    return {
      mayPost: false,
      register: bytes => {
        if (random.chance(0.1)) return undefined
        const key = ++keys
        this.registered.set(key, bytes)
        return {
          bytes,
          access: { remoteRead: true, remoteWrite: false },
          key: Uint8Array.of(key >> 8, key),
          revoke: () => {
            this.registered.set(key, REVOKED)
            return true
          },
          deregister: () => void this.registered.delete(key),
        }
      },
      import: ([high = 0, low = 0], length) => ({
        length: (high << 8) | low,
        access: { remoteRead: length > 0, remoteWrite: false },
      }),
      read: (target, { length: key }, at) => {
        const bytes = this.peer.registered.get(key)
        if (bytes === undefined || bytes === REVOKED || random.chance(0.1)) return false
        check(at + target.length <= bytes.length, 'more is fetched than was offered')
        target.set(bytes.subarray(at, at + target.length))
        this.fetched += target.length
        return true
      },
      write: () => fail('a write to a receive that was not posted'),
    }
  }

  private openOut(): MessageOut {
    const sendBytes = new Uint8Array(SEGMENT_MAX)
    let handler = 0
    let words: number[] = []
    return {
      sendBytes,
      mediumMax: SEGMENT_MAX,
      reserveOneWay: (index, wordCount, a, b, c, d, length) => {
        check(length <= SEGMENT_MAX, 'a message that is too long')
        if (!this.link.isOpen) return CLOSED
        const { arriving } = this.peer
        const queued = arriving.reduce((sum, { payload }) => sum + payload.length, 0)
        if (queued + length > QUEUE_MAX || arriving.length >= MESSAGES_MAX) return NO_RESOURCE
        handler = index
        words = [a, b, c, d].slice(0, wordCount)
        return 0
      },
      commitOneWay: length =>
        void this.peer.arriving.push({ handler, words, payload: Buffer.from(sendBytes.subarray(0, length)) }),
    }
  }
}

export function openStreamPair(random: Random): [client: Side, server: Side] {
  const sides = [0, 1].map(number => new Side(number, random, random.pick([64, 96, 256, 1024]) * 1024))
  const [client, server] = sides as [Side, Side]
  client.peer = server
  server.peer = client
  server.stream.handleAccepted(client.stream.window)
  client.stream.handleAccepted(server.stream.window)
  // Later than the iteration of the event loop in which the client's program hears that it is connected.
  for (const side of sides) side.turn()
  return [client, server]
}

export function check(isRight: boolean, complaint: string): void {
  if (!isRight) fail(complaint)
}

function fail(complaint: string): never {
  throw new Error(complaint)
}
