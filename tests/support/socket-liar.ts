/** The peer of a real channel of sockets, made of bare messages: it says what it likes, and keeps what it hears. */
import type { Test } from 'tap'
import { type Channel, ChannelGroup, type Message } from '../../am/index.ts'
import { SocketChannel } from '../../fastsockets/stream/socket-channel.ts'
import type { Stream } from '../../fastsockets/stream/stream.ts'
import {
  ACCEPT,
  CHANNEL_CREDITS,
  CLOSE,
  CONNECT,
  CONSUMED,
  DATA,
  RD_COMPL,
  REFUSE,
  SINK_AVAIL,
  SRC_AVAIL,
  WINDOW,
  WR_COMPL,
} from '../../fastsockets/stream/stream-layout.ts'
import type { StreamSink } from '../../fastsockets/stream/stream-sink.ts'
import { copyBytes, openLoopbackPair, type Registration } from '../../nic/index.ts'
import { until } from './until.ts'

const READABLE = { remoteRead: true, remoteWrite: false }

interface Said {
  readonly handler: number
  readonly words: number[]
  readonly payload: Buffer
}

/** A stream of a real channel, and its peer, which says what it likes. */
export class SocketLiar {
  readonly said: Said[] = []
  readonly received: Buffer[] = []
  readonly posted: Buffer[] = []
  /** What else the program was told. */
  readonly told: string[] = []
  isReading = true
  isGone = false
  /** What the program does when it hears data. */
  handleData: () => void = () => {}
  /** And when it accepts a connection. */
  handleConnection: () => void = () => {}
  readonly #channel: Channel
  #stream: Stream | undefined

  constructor(t: Test, [end, other] = openLoopbackPair()) {
    const victim = new SocketChannel(
      end,
      'liar',
      stream => {
        this.#stream = stream
        stream.sink = this.#sink()
        this.handleConnection()
        return { clientPort: 1, begin: () => {} }
      },
      () => {
        this.isGone = true
      },
    )
    const group = new ChannelGroup()
    for (const handler of [
      ACCEPT,
      REFUSE,
      CLOSE,
      DATA,
      CONSUMED,
      SRC_AVAIL,
      RD_COMPL,
      SINK_AVAIL,
      WR_COMPL,
    ]) {
      group.setHandler(handler, message => this.said.push(saidIn(message)))
    }
    const owner = {
      peerName: 'victim',
      destination: undefined,
      handleProgress() {},
      roomWanted: () => 0,
      handleBroken() {},
    }
    this.#channel = group.attach(other, { credits: CHANNEL_CREDITS, owner })
    t.teardown(() => {
      victim.close()
      group.detach(this.#channel)
    })
  }

  get stream(): Stream {
    return this.#stream as Stream
  }

  /** False if there is no credit or room for it. */
  say(handler: number, words: readonly number[], payload: Uint8Array = new Uint8Array(0)): boolean {
    const at = this.#channel.reserveRequest(handler, words.length, payload.length)
    if (at < 0) return false
    for (const [i, word] of words.entries()) this.#channel.putWord(i, word)
    copyBytes(payload, 0, this.#channel.sendBytes, at, payload.length)
    this.#channel.commit(payload.length)
    return true
  }

  async hears(handler: number): Promise<number[]> {
    const found = await until(`message ${handler}`, () => this.said.find(said => said.handler === handler))
    this.said.splice(this.said.indexOf(found), 1)
    return found.words
  }

  register(bytes: Uint8Array, access = READABLE): Registration {
    return this.#channel.end.register(bytes, access)
  }

  async connect(window = WINDOW): Promise<number> {
    this.say(CONNECT, [1, 80, window, 4], Buffer.from('127.0.0.1'))
    const [number = 0] = await this.hears(ACCEPT)
    return -number
  }

  #sink(): StreamSink {
    const liar = this
    return {
      get isReading() {
        return liar.isReading
      },
      handleData(bytes) {
        liar.received.push(bytes)
        liar.handleData()
        return bytes.length
      },
      handleEnd: () => void liar.told.push('end'),
      handleWritten: () => void liar.told.push('written'),
      handleSent() {},
      handleShutdown() {},
      handleError: (code, syscall) => void liar.told.push(`${syscall} ${code}`),
      handleConnected() {},
      handleRefused() {},
      handlePosted: length => liar.posted.push(Buffer.alloc(length)),
    }
  }
}

function saidIn(message: Message): Said {
  const words = Array.from({ length: 4 }, (_, i) => message.word(i))
  return { handler: message.handler, words, payload: message.copy() }
}
