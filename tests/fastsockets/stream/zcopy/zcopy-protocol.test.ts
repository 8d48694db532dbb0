/** What is said for ZCopy, and what a peer may not say: the other side of the channel is made of bare messages. */
import t from 'tap'
import {
  DATA,
  OFFER_MAX,
  RD_COMPL,
  SINK_AVAIL,
  SRC_AVAIL,
  WR_COMPL,
} from '../../../../fastsockets/stream/stream-layout.ts'
import { type Driver, drivers } from '../../../../nic/index.ts'
import { skipHere } from '../../../support/skip.ts'
import { SocketLiar } from '../../../support/socket-liar.ts'
import { until } from '../../../support/until.ts'

const LENGTH = 300_000
const WRITABLE = { remoteRead: false, remoteWrite: true }

t.test('an offer is fetched, and then a posted receive is offered to be written', async t => {
  const liar = new SocketLiar(t)
  const to = await liar.connect()
  const chunk = Buffer.alloc(LENGTH, 'chunk')
  const { key } = liar.register(chunk)
  liar.say(SRC_AVAIL, [to, 0, 0, LENGTH], key)
  const [, sequence] = await liar.hears(RD_COMPL)
  t.equal(sequence, LENGTH)
  t.ok(Buffer.concat(liar.received).equals(chunk))

  const into = Buffer.alloc(LENGTH)
  liar.stream.postReceive(into)
  const [, at, , length] = await liar.hears(SINK_AVAIL)
  t.same([at, length], [LENGTH, LENGTH])
  liar.say(WR_COMPL, [to, LENGTH, 0, LENGTH - 5])
  await until('the receive', () => liar.posted.length === 1)
  t.equal(liar.posted[0]?.length, LENGTH - 5)

  // Something else comes instead: that sink is void, and there is none until the next large chunk.
  liar.stream.postReceive(into)
  await liar.hears(SINK_AVAIL)
  liar.say(DATA, [to, 2 * LENGTH - 5, 0, 0], Buffer.from('small'))
  await until('the data', () => liar.received.at(-1)?.toString() === 'small')
  liar.stream.postReceive(into)
  liar.say(WR_COMPL, [to, 2 * LENGTH, 0, 5])
  await until('the end of the channel', () => liar.isGone)
  t.notOk(liar.said.some(({ handler }) => handler === SINK_AVAIL))
})

t.test('memory that cannot be read is asked for as data', async t => {
  const shm = drivers.get('shm') as Driver
  const availability = shm.availability()
  if (!availability.usable) return skipHere(t, `no shm: ${availability.reason}`)
  const offer = shm.offer({ readsPeer: true })
  const ends = Promise.all([shm.connect(offer.blob, { readsPeer: true }), offer.accepted])
  const liar = new SocketLiar(t, await ends)
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
  const liar = new SocketLiar(t)
  const to = await liar.connect()
  liar.isReading = false
  liar.say(SRC_AVAIL, [to, 0, 0, LENGTH], liar.register(Buffer.alloc(LENGTH)).key)
  t.same((await liar.hears(RD_COMPL)).slice(0, 3), [1, 0, 0])
  t.notOk(liar.isGone)
})

const LIES: Record<string, (liar: SocketLiar, to: number, key: Uint8Array) => void> = {
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
  'an offer for an unknown socket': (liar, to, key) => liar.say(SRC_AVAIL, [to + 1, 0, 0, LENGTH], key),
  'an offer behind an offer': (liar, to, key) => {
    liar.say(SRC_AVAIL, [to, 0, 0, LENGTH], key)
    liar.say(SRC_AVAIL, [to, 0, 0, LENGTH], key)
  },
  'data behind an offer': (liar, to, key) => {
    liar.say(SRC_AVAIL, [to, 0, 0, LENGTH], key)
    liar.say(DATA, [to, 0, 0, 0], Buffer.from('early'))
  },
  'more taken than was offered': (liar, to, key) => liar.say(SRC_AVAIL, [to, 0, 1, LENGTH], key),
  'an RD_COMPL without an offer': (liar, to) => liar.say(RD_COMPL, [to, 0, 0]),
  'a WR_COMPL without a posted receive': (liar, to) => liar.say(WR_COMPL, [to, 0, 0, 5]),
  'a sink that may only be read': (liar, to, key) => liar.say(SINK_AVAIL, [to, 0, 0, LENGTH], key),
  'a sink with a key that is none': (liar, to) => liar.say(SINK_AVAIL, [to, 0, 0, 1], Buffer.alloc(32)),
}

for (const [name, lie] of Object.entries(LIES)) {
  t.test(`${name}: the end of the channel`, async t => {
    const liar = new SocketLiar(t)
    const to = await liar.connect()
    lie(liar, to, liar.register(Buffer.alloc(LENGTH)).key)
    await until('the end of the channel', () => liar.isGone)
    t.strictSame(liar.received, [], 'nothing reached the program')
  })
}
