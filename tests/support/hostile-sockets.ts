/**
 * A peer that keeps the rules of active messages and breaks those of sockets: wrong socket numbers, sequences, windows
 * and claims of what was consumed, between messages that are right. Its victim is a real channel with real streams.
 */
import { KIND_REPLY, KIND_REQUEST, NO_SLOT } from '../../am/message-layout.ts'
import { rawHost } from '../../fastsockets/stream/channel-host.ts'
import { Departures } from '../../fastsockets/stream/departures.ts'
import { SocketChannel, type SocketStream } from '../../fastsockets/stream/socket-channel.ts'
import {
  ACCEPT,
  CHANNEL_CREDITS,
  CLOSE,
  CONNECT,
  CONSUMED,
  DATA,
  FLAG_FIN,
  REFUSE,
  STREAMS_MAX,
  WINDOW,
} from '../../fastsockets/stream/stream-layout.ts'
import type { StreamSink } from '../../fastsockets/stream/stream-sink.ts'
import { realClock } from '../../nic/clock.ts'
import { openLoopbackPair, type VirtualInterface } from '../../nic/index.ts'
import { drainMessages, sendMessage } from './messages.ts'
import type { Random } from './random.ts'
import { isOneWay } from './socket-messages.ts'

/** Its time stands still: all sockets of one victim have ended before the next victim begins, so each replay finds the same budget. */
const host = { ...rawHost, departures: new Departures({ ...realClock, now: () => 0 }) }

const ABSURD = [0, -1, 1, 0x7fff_ffff, -0x8000_0000, WINDOW, WINDOW + 1, 1 << 30] as const

/** A socket of the victim's program: reads now and then, writes now and then, closes now and then. */
class Socket implements StreamSink {
  isReading = true
  received = 0
  endings = 0
  readonly stream: SocketStream

  constructor(stream: SocketStream) {
    this.stream = stream
    stream.sink = this
  }

  act(random: Random): void {
    if (this.endings > 0) return
    const what = random.within(0, 9)
    if (what < 3) this.isReading = !this.isReading
    if (this.isReading) this.stream.startReading()
    if (what === 4 && !this.stream.refusesWrites && !this.stream.isWaiting)
      this.stream.write([Buffer.alloc(random.within(0, 100_000))])
    if (what === 5) this.stream.shutdown()
    if (what === 6 && random.chance(0.3)) {
      this.endings++
      this.stream.close(random.chance(0.5))
    }
  }

  handleData(bytes: Buffer): number {
    this.received += bytes.length
    return bytes.length
  }

  handleError(): void {
    this.endings++
    this.stream.close(false)
  }

  handleRefused(): void {
    this.endings++
  }

  handleEnd(): void {}
  handleWritten(): void {}
  handleSent(): void {}
  handleShutdown(): void {}
  handleConnected(): void {}
}

/** What the peer knows of one of the victim's sockets, to be right about it when it wants to be. */
interface Known {
  readonly number: number
  sequence: number
}

export class HostileSockets {
  readonly sockets: Socket[] = []
  isGone = false
  sentBytes = 0
  sent = 0
  readonly #random: Random
  readonly #malice: number
  readonly #wire: VirtualInterface
  readonly #channel: SocketChannel
  readonly #known: Known[] = []
  /** Requests of the victim that wait for an answer: its CONNECTs. */
  readonly #asked: { slot: number; from: number }[] = []
  #slot = 0
  /** Of the connection that was asked for last. */
  #number = 0

  /** `malice`: how many of its words are wrong. */
  constructor(random: Random, malice = 0.004) {
    this.#random = random
    this.#malice = malice
    const [wire, far] = openLoopbackPair()
    this.#wire = wire
    this.#channel = new SocketChannel(
      far,
      'a hostile peer',
      stream => {
        if (random.chance(0.1)) return 3
        return { clientPort: 1024, begin: () => void this.sockets.push(new Socket(stream)) }
      },
      () => {
        this.isGone = true
      },
      // As those of raw sockets are: polled by hand.
      true,
      undefined,
      undefined,
      host,
    )
  }

  /** Both sides do something; how long the victim was busy with what had come. */
  step(): number {
    const random = this.#random
    for (let i = random.within(1, 8); i > 0; i--) this.#say()
    const before = process.cpuUsage()
    this.#channel.pollNow(64)
    const { user, system } = process.cpuUsage(before)
    const ms = (user + system) / 1000
    this.#listen()
    if (random.chance(0.3)) for (const socket of this.sockets) socket.act(random)
    if (random.chance(0.1) && this.#channel.isOpen) {
      const connecting: { socket?: Socket } = {}
      const sink = { handleRefused: () => connecting.socket?.handleRefused() } as unknown as StreamSink
      const stream = this.#channel.connect(sink, 80, '127.0.0.1', 4)
      if (stream !== undefined) {
        connecting.socket = new Socket(stream)
        this.sockets.push(connecting.socket)
      }
    }
    return ms
  }

  close(): void {
    this.#channel.close()
    this.#wire.close()
  }

  #listen(): void {
    for (const { kind, handler, slot, words } of drainMessages(this.#wire)) {
      if (kind === KIND_REPLY && handler === ACCEPT)
        this.#known.push({ number: -(words[0] as number), sequence: 0 })
      if (kind === KIND_REQUEST && handler === CONNECT) this.#asked.push({ slot, from: words[0] as number })
    }
  }

  #say(): void {
    const random = this.#random
    const asked = this.#asked[0]
    if (asked !== undefined && random.chance(0.3)) {
      this.#asked.shift()
      const handler = random.pick([ACCEPT, ACCEPT, REFUSE, DATA])
      const words = [this.#lie(asked.from), this.#lie(WINDOW), this.#lie(1025)]
      if (sendMessage(this.#wire, { kind: KIND_REPLY, handler, slot: asked.slot, words })) {
        this.sent++
        if (handler === ACCEPT) this.#known.push({ number: asked.from, sequence: 0 })
      }
      return
    }
    const at = random.within(0, Math.max(0, this.#known.length - 1))
    const known = this.#known[at]
    if (known === undefined || random.chance(0.05)) {
      this.#request(
        CONNECT,
        [this.#lie(++this.#number + STREAMS_MAX * random.within(0, 3)), 80, this.#lie(WINDOW), 4],
        '127.0.0.1',
      )
      return
    }
    const to = this.#lie(known.number)
    const what = random.within(0, 39)
    if (what === 0) {
      // After its CLOSE a side sends nothing more for this socket.
      if (this.#request(CLOSE, [to, this.#lie(1)])) this.#known.splice(at, 1)
      return
    }
    if (what < 5) return void this.#request(CONSUMED, [to, this.#lie(0)])
    const payload = Buffer.alloc(random.chance(0.9) ? random.within(0, 2000) : random.within(0, 60_000))
    const isLast = what === 5
    const flags = this.#lie(isLast ? FLAG_FIN : 0)
    if (!this.#request(DATA, [to, this.#lie(known.sequence), this.#lie(0), flags], payload)) return
    known.sequence = (known.sequence + payload.length) | 0
    if (isLast) this.#known.splice(at, 1)
  }

  #request(handler: number, words: readonly number[], payload: Buffer | string = ''): boolean {
    const bytes = Buffer.from(payload)
    const slot = isOneWay(handler) ? NO_SLOT : this.#slot
    if (!sendMessage(this.#wire, { kind: KIND_REQUEST, handler, slot, words, payload: bytes })) return false
    if (slot !== NO_SLOT) this.#slot = (this.#slot + 1) % CHANNEL_CREDITS
    this.sent++
    this.sentBytes += bytes.length
    return true
  }

  /** Mostly the truth: lies are found at once. */
  #lie(truth: number): number {
    const random = this.#random
    if (!random.chance(this.#malice)) return truth
    return random.chance(0.5) ? random.pick(ABSURD) : truth + random.within(-3, 3)
  }
}
