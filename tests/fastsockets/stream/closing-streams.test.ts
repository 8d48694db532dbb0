/** What comes in one batch: a close right behind what was fetched, a reset behind data, data around a listener that stops reading. */
import t from 'tap'
import {
  CLOSE,
  CLOSE_DONE,
  CLOSE_RESET,
  CONNECT,
  CONSUMED,
  DATA,
  RD_COMPL,
  SRC_AVAIL,
  WINDOW,
} from '../../../fastsockets/stream/stream-layout.ts'
import { NO_RESOURCE } from '../../../nic/index.ts'
import { SocketLiar } from '../../support/socket-liar.ts'
import { until } from '../../support/until.ts'

const LENGTH = 300_000

t.test('a write that was fetched to its end is over, though the close came right behind', async t => {
  const liar = new SocketLiar(t)
  const to = await liar.connect()
  t.ok(liar.stream.write([Buffer.alloc(LENGTH)]), 'it is taken')
  await liar.hears(SRC_AVAIL)
  liar.say(RD_COMPL, [to, LENGTH, LENGTH])
  liar.say(CLOSE, [to, CLOSE_DONE, LENGTH])
  await until('the end', () => liar.told.length > 0)
  t.strictSame(liar.told, ['end'])
  t.equal(liar.stream.unsentLength, 0)
})

t.test(
  'a write that waits for the peer to read hears of its reset, be there data before it or not',
  async t => {
    for (const data of ['', 'abc']) {
      const window = 100
      const liar = new SocketLiar(t)
      const to = await liar.connect(window)
      t.notOk(liar.stream.write([Buffer.alloc(2 * window)]))
      await liar.hears(DATA)
      liar.isReading = false
      if (data !== '') liar.say(DATA, [to, 0, 0, 0], Buffer.from(data))
      await until('the data', () => liar.stream.waitingLength === data.length)
      liar.isReading = data !== ''
      liar.stream.startReading()
      liar.say(CLOSE, [to, CLOSE_RESET, window])
      await until('the reset', () => liar.told.length > 0)
      t.strictSame(liar.told, ['write ECONNRESET'])
      t.equal(Buffer.concat(liar.received).toString(), data)
    }
  },
)

t.test('a write behind one that waits goes out behind it', async t => {
  const liar = new SocketLiar(t)
  const to = await liar.connect(4)
  t.notOk(liar.stream.write([Buffer.from('PREFIX')]))
  t.notOk(liar.stream.write([Buffer.from('more'), Buffer.from('!')]))
  const heard = (): string =>
    Buffer.concat(
      liar.said.filter(({ handler }) => handler === DATA).map(({ payload }) => payload),
    ).toString()
  for (const length of [4, 8, 11]) {
    await until(`${length} bytes`, () => heard().length === length)
    liar.say(CONSUMED, [to, length])
  }
  await until('the write', () => liar.told.length > 0)
  t.strictSame(liar.told, ['written'])
  t.equal(heard(), 'PREFIXmore!')
})

t.test('a close does not overtake that a chunk was fetched', async t => {
  const liar = new SocketLiar(t)
  const to = await liar.connect()
  const { channel } = liar.stream.channel
  const reserve = channel.reserveOneWay.bind(channel)
  let isRefused = false
  channel.reserveOneWay = (handler, ...rest) => {
    if (handler !== RD_COMPL || isRefused) return reserve(handler, ...rest)
    isRefused = true
    return NO_RESOURCE
  }
  // It takes more than one turn to fetch all of it.
  liar.handleData = () => {
    if (Buffer.concat(liar.received).length === LENGTH) liar.stream.close(false)
  }
  liar.said.length = 0
  liar.say(SRC_AVAIL, [to, 0, 0, LENGTH], liar.register(Buffer.alloc(LENGTH)).key)
  await until('the close', () => liar.said.some(({ handler }) => handler === CLOSE))
  t.ok(isRefused)
  t.strictSame(
    liar.said.map(({ handler }) => handler).filter(handler => handler !== DATA),
    [RD_COMPL, CLOSE],
  )
})

t.test('bytes do not change places when a listener of something else stops reading', async t => {
  const liar = new SocketLiar(t)
  const to = await liar.connect()
  const { stream } = liar
  liar.handleConnection = () => {
    liar.isReading = false
  }
  liar.say(DATA, [to, 0, 0, 0], Buffer.from('first, '))
  liar.say(CONNECT, [2, 80, WINDOW, 4], Buffer.from('127.0.0.1'))
  liar.say(DATA, [to, 7, 0, 0], Buffer.from('second'))
  await until('the data', () => stream.waitingLength === 13)
  liar.isReading = true
  stream.startReading()
  await until('all of it', () => Buffer.concat(liar.received).length === 13)
  t.equal(Buffer.concat(liar.received).toString(), 'first, second')
})
