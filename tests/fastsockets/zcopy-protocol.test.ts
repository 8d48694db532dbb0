/** What is said for ZCopy, and what a peer may not say: the other side of the channel is made of bare messages. */
import t, { type Test } from 'tap'
import { type Channel, ChannelGroup, type Message } from '../../am/index.ts'
import { SocketChannel } from '../../fastsockets/socket-channel.ts'
import type { Stream } from '../../fastsockets/stream.ts'
import {
  ACCEPT,
  CHANNEL_CREDITS,
  CONNECT,
  CONSUMED,
  DATA,
  OFFER_MAX,
  RD_COMPL,
  SINK_AVAIL,
  SRC_AVAIL,
  WINDOW,
  WR_COMPL,
} from '../../fastsockets/stream-layout.ts'
import type { StreamSink } from '../../fastsockets/stream-sink.ts'
import { copyBytes, type Driver, drivers, openLoopbackPair, type Registration } from '../../nic/index.ts'
import { until } from '../support/until.ts'

const LENGTH = 300_000
const READABLE = { remoteRead: true, remoteWrite: false }
const WRITABLE = { remoteRead: false, remoteWrite: true }

interface Said {
  readonly handler: number
  readonly words: number[]
  readonly payload: Buffer
}

/** A stream of a real channel, and its peer, which says what it likes. */
class Liar {
  readonly said: Said[] = []
  readonly received: Buffer[] = []
  readonly posted: Buffer[] = []
  isReading = true
  isGone = false
  readonly #channel: Channel
  #stream: Stream | undefined

  constructor(t: Test, [end, other] = openLoopbackPair()) {
    const victim = new SocketChannel(
      end,
      'liar',
      stream => {
        this.#stream = stream
        stream.sink = this.#sink()
        return { clientPort: 1, begin: () => {} }
      },
      () => {
        this.isGone = true
      },
    )
    const group = new ChannelGroup()
    for (const handler of [ACCEPT, DATA, CONSUMED, SRC_AVAIL, RD_COMPL, SINK_AVAIL, WR_COMPL]) {
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

  say(handler: number, words: readonly number[], payload: Uint8Array = new Uint8Array(0)): void {
    const at = this.#channel.reserveRequest(handler, words.length, payload.length)
    for (const [i, word] of words.entries()) this.#channel.putWord(i, word)
    copyBytes(payload, 0, this.#channel.sendBytes, at, payload.length)
    this.#channel.commit(payload.length)
  }

  async hears(handler: number): Promise<number[]> {
    const found = await until(`message ${handler}`, () => this.said.find(said => said.handler === handler))
    this.said.splice(this.said.indexOf(found), 1)
    return found.words
  }

  register(bytes: Uint8Array, access = READABLE): Registration {
    return this.#channel.end.register(bytes, access)
  }

  async connect(): Promise<number> {
    this.say(CONNECT, [1, 80, WINDOW, 4], Buffer.from('127.0.0.1'))
    const [, to = 0] = await this.hears(ACCEPT)
    return to
  }

  #sink(): StreamSink {
    const liar = this
    return {
      get isReading() {
        return liar.isReading
      },
      handleData: bytes => liar.received.push(bytes) && bytes.length,
      handleEnd() {},
      handleWritten() {},
      handleSent() {},
      handleShutdown() {},
      handleError() {},
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

t.test('an offer is fetched, and then a posted receive is offered to be written', async t => {
  const liar = new Liar(t)
  const to = await liar.connect()
  const chunk = Buffer.alloc(LENGTH, 'chunk')
  const { key } = liar.register(chunk)
  liar.say(SRC_AVAIL, [to, 0, 0, LENGTH], key)
  const [, sequence] = await liar.hears(RD_COMPL)
  t.equal(sequence, LENGTH)
  t.ok(Buffer.concat(liar.received).equals(chunk))

  const into = Buffer.alloc(LENGTH)
  liar.stream.postedSink.offer(into)
  const [, at, , length] = await liar.hears(SINK_AVAIL)
  t.same([at, length], [LENGTH, LENGTH])
  liar.say(WR_COMPL, [to, LENGTH, 0, LENGTH - 5])
  await until('the receive', () => liar.posted.length === 1)
  t.equal(liar.posted[0]?.length, LENGTH - 5)

  // Something else comes instead: that sink is void, and there is none until the next large chunk.
  liar.stream.postedSink.offer(into)
  await liar.hears(SINK_AVAIL)
  liar.say(DATA, [to, 2 * LENGTH - 5, 0, 0], Buffer.from('small'))
  await until('the data', () => liar.received.at(-1)?.toString() === 'small')
  liar.stream.postedSink.offer(into)
  liar.say(WR_COMPL, [to, 2 * LENGTH, 0, 5])
  await until('the end of the channel', () => liar.isGone)
  t.notOk(liar.said.some(({ handler }) => handler === SINK_AVAIL))
})

t.test('memory that cannot be read is asked for as data', async t => {
  const shm = drivers.get('shm') as Driver
  const availability = shm.availability()
  if (!availability.usable) return t.pass(`SKIPPED: no shm: ${availability.reason}`)
  const offer = shm.offer()
  const liar = new Liar(t, await Promise.all([shm.connect(offer.blob), offer.accepted]))
  const to = await liar.connect()
  const { key } = liar.register(Buffer.alloc(LENGTH))
  // Where it says that the memory is, there is none.
  Buffer.from(key.buffer, key.byteOffset, key.length).writeBigUInt64LE(4096n, 8)
  liar.say(SRC_AVAIL, [to, 0, 0, LENGTH], key)
  t.same((await liar.hears(RD_COMPL)).slice(0, 3), [1, 0, 0])
  liar.say(DATA, [to, 0, 0, 0], Buffer.from('copied'))
  await until('the data', () => liar.received.length > 0)
  t.equal(liar.received[0]?.toString(), 'copied')
  t.notOk(liar.isGone)
})

t.test('a reader that stops: the rest is asked for as data', async t => {
  const liar = new Liar(t)
  const to = await liar.connect()
  liar.isReading = false
  liar.say(SRC_AVAIL, [to, 0, 0, LENGTH], liar.register(Buffer.alloc(LENGTH)).key)
  t.same((await liar.hears(RD_COMPL)).slice(0, 3), [1, 0, 0])
  t.notOk(liar.isGone)
})

const LIES: Record<string, (liar: Liar, to: number, key: Uint8Array) => void> = {
  'an offer out of sequence': (liar, to, key) => liar.say(SRC_AVAIL, [to, 5, 0, LENGTH], key),
  'an offer of nothing': (liar, to, key) => liar.say(SRC_AVAIL, [to, 0, 0, 0], key),
  'an offer of less than nothing': (liar, to, key) => liar.say(SRC_AVAIL, [to, 0, 0, -1], key),
  'an offer of more than the key gives': (liar, to, key) => liar.say(SRC_AVAIL, [to, 0, 0, LENGTH + 1], key),
  'an offer of more than may be offered': (liar, to, key) =>
    liar.say(SRC_AVAIL, [to, 0, 0, OFFER_MAX + 1], key),
  'an offer with a key that is none': (liar, to) => liar.say(SRC_AVAIL, [to, 0, 0, 1], Buffer.alloc(32, 255)),
  'an offer with no key': (liar, to) => liar.say(SRC_AVAIL, [to, 0, 0, 1]),
  'an offer with a huge key': (liar, to) => liar.say(SRC_AVAIL, [to, 0, 0, 1], Buffer.alloc(4000)),
  'an offer of memory that may only be written': (liar, to) =>
    liar.say(SRC_AVAIL, [to, 0, 0, LENGTH], liar.register(Buffer.alloc(LENGTH), WRITABLE).key),
  'an offer of memory that was taken back': (liar, to) => {
    const registration = liar.register(Buffer.alloc(LENGTH))
    registration.deregister()
    liar.say(SRC_AVAIL, [to, 0, 0, LENGTH], registration.key)
  },
  'an offer for nobody': (liar, to, key) => liar.say(SRC_AVAIL, [to + 1, 0, 0, LENGTH], key),
  'an offer behind an offer': (liar, to, key) => {
    liar.say(SRC_AVAIL, [to, 0, 0, LENGTH], key)
    liar.say(SRC_AVAIL, [to, 0, 0, LENGTH], key)
  },
  'data behind an offer': (liar, to, key) => {
    liar.say(SRC_AVAIL, [to, 0, 0, LENGTH], key)
    liar.say(DATA, [to, 0, 0, 0], Buffer.from('early'))
  },
  'more taken than was offered': (liar, to, key) => liar.say(SRC_AVAIL, [to, 0, 1, LENGTH], key),
  'an RD_COMPL that nobody waits for': (liar, to) => liar.say(RD_COMPL, [to, 0, 0]),
  'a WR_COMPL that nobody waits for': (liar, to) => liar.say(WR_COMPL, [to, 0, 0, 5]),
  'a sink that may only be read': (liar, to, key) => liar.say(SINK_AVAIL, [to, 0, 0, LENGTH], key),
  'a sink with a key that is none': (liar, to) => liar.say(SINK_AVAIL, [to, 0, 0, 1], Buffer.alloc(32)),
}

for (const [name, lie] of Object.entries(LIES)) {
  t.test(`${name}: the end of the channel`, async t => {
    const liar = new Liar(t)
    const to = await liar.connect()
    lie(liar, to, liar.register(Buffer.alloc(LENGTH)).key)
    await until('the end of the channel', () => liar.isGone)
    t.pass(name)
  })
}
