/** Code that decides about connections may throw: a getter of the program's server, for example. */
import t from 'tap'
import { REFUSAL } from '../../../fastsockets/bootstrap/bootstrap-layout.ts'
import { SocketChannel } from '../../../fastsockets/stream/socket-channel.ts'
import type { Stream } from '../../../fastsockets/stream/stream.ts'
import { STREAMS_MAX } from '../../../fastsockets/stream/stream-layout.ts'
import type { StreamSink } from '../../../fastsockets/stream/stream-sink.ts'
import { openLoopbackPair } from '../../../nic/index.ts'

const MANY = STREAMS_MAX + 1000
const MESSAGES = 10

t.test('its clients are refused, and the channel has no fewer sockets for that', async t => {
  const [near, far] = openLoopbackPair()
  let isThrowing = true
  let accepted: Stream | undefined
  const refuse = () => REFUSAL.NOT_LISTENING
  const server = new SocketChannel(
    far,
    'client',
    stream => {
      if (isThrowing) throw new Error('of the getter')
      accepted = stream
      return { clientPort: 1025, begin: () => {} }
    },
    () => {},
    true,
  )
  const client = new SocketChannel(near, 'server', refuse, () => {}, true)
  t.teardown(() => {
    client.close()
    server.close()
  })
  const refusals: unknown[] = []
  let connected = 0
  const sink = {
    handleRefused: (refusal: number | undefined) => refusals.push(refusal),
    handleConnected: () => connected++,
  } as unknown as StreamSink
  let thrown = 0
  for (let i = 0; i < MANY; i++) {
    client.connect(sink, 80, '127.0.0.1', 4)
    try {
      server.pollNow(MESSAGES)
    } catch {
      thrown++
    }
    client.pollNow(MESSAGES)
  }
  t.equal(thrown, MANY, 'the program hears of each')
  t.equal(refusals.length, MANY)
  t.ok(refusals.every(refusal => refusal === REFUSAL.NOT_LISTENING))
  isThrowing = false
  client.connect(sink, 80, '127.0.0.1', 4)
  server.pollNow(MESSAGES)
  client.pollNow(MESSAGES)
  t.equal(connected, 1)
  t.strictSame(server.streams.all(), [accepted], 'and has the only place that is taken')
})
