/** The peer of a real channel of sockets, made of bare messages: it says what it likes, and keeps what it hears. */
import type { Test } from 'tap'
import { type Channel, ChannelGroup } from '../../am/index.ts'
import { SocketChannel, type SocketStream } from '../../fastsockets/stream/socket-channel.ts'
import { ACCEPT, CHANNEL_CREDITS, CONNECT, REFUSE, WINDOW } from '../../fastsockets/stream/stream-layout.ts'
import type { StreamSink } from '../../fastsockets/stream/stream-sink.ts'
import { openLoopbackPair, type Registration } from '../../nic/index.ts'
import { hear, ONE_WAY, type Said, say } from './socket-messages.ts'
import { until } from './until.ts'

const READABLE = { remoteRead: true, remoteWrite: false }

/** A stream of a real channel, and its peer, which says what it likes. */
export class SocketLiar {
  readonly said: Said[] = []
  readonly received: Buffer[] = []
  readonly posted: Buffer[] = []
  /** The other reports to the program. */
  readonly told: string[] = []
  isReading = true
  isGone = false
  /** What the program does when it hears data. */
  handleData: () => void = () => {}
  /** And when it accepts a connection. */
  handleConnection: () => void = () => {}
  readonly #channel: Channel
  #stream: SocketStream | undefined

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
    for (const handler of [ACCEPT, REFUSE, ...ONE_WAY]) hear(group, handler, said => this.said.push(said))
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

  get stream(): SocketStream {
    return this.#stream as SocketStream
  }

  /** False if there is no credit or room for it. */
  say(handler: number, words: readonly number[], payload?: Uint8Array): boolean {
    return say(this.#channel, handler, words, payload)
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
