/** Two streams, message by message: what TCP promises at each step. */
import t from 'tap'
import { Random } from '../../support/random.ts'
import { openStreamPair, type Side } from './stream-pair.ts'

/** Everything under way arrives, and each side has its turns. */
function settle(...sides: Side[]): void {
  for (let i = 0; i < 1000 && !sides.every(side => side.isIdle); i++) {
    for (const side of sides) {
      side.arrive(Number.POSITIVE_INFINITY)
      side.turn()
    }
  }
}

function openPair(): [client: Side, server: Side] {
  return openStreamPair(new Random(1))
}

t.test('half-close: each direction ends by itself', async t => {
  const [client, server] = openPair()
  client.setReading(true)
  server.setReading(true)
  client.write(1000)
  client.shutDown()
  settle(client, server)
  t.match([server.read, server.ended, client.ended], [1000, 'end', undefined])
  server.write(2000)
  server.shutDown()
  settle(client, server)
  t.match([client.read, client.ended], [2000, 'end'])
  client.close(false)
  server.close(false)
  settle(client, server)
  t.ok(client.isForgotten && server.isForgotten)
})

t.test('a reader that pauses shuts the window, and its sender waits', async t => {
  const [client, server] = openPair()
  const { window } = server.stream
  client.write(2 * window)
  settle(client, server)
  t.ok(client.isWaiting)
  t.equal(server.stream.waitingLength, window, 'a window full waits, and no byte more')
  server.setReading(true)
  settle(client, server)
  t.notOk(client.isWaiting)
  t.equal(server.read, 2 * window)
})

t.test('a close with bytes unread is a reset', async t => {
  const [client, server] = openPair()
  client.setReading(true)
  client.write(10)
  settle(client, server)
  t.equal(server.stream.waitingLength, 10)
  server.close(false)
  settle(client, server)
  t.equal(client.ended, 'ECONNRESET')
})

t.test('a reset after an end that TCP has carried is told by the next write alone', async t => {
  const [client, server] = openPair()
  client.setReading(true)
  client.hasEnded = true
  server.close(true)
  settle(client, server)
  t.equal(client.ended, undefined)
  t.strictSame([client.stream.refusesWrites, client.stream.writeError], [true, 'EPIPE'])
})

t.test('what a reset overtakes is lost, and what was read before it is not', async t => {
  const [client, server] = openPair()
  server.setReading(true)
  client.write(500)
  settle(client, server)
  client.write(500)
  client.close(true)
  settle(client, server)
  t.ok(server.read >= 500)
  t.equal(server.ended, 'ECONNRESET')
})

t.test('bytes that are written go out though the program closes, and is over its budget by then', async t => {
  const [client, server] = openPair()
  server.setReading(true)
  // More than the queue of messages takes: the rest waits here, and counts as written.
  client.write(60_000)
  t.notOk(client.isWaiting)
  t.ok(client.stream.unsentLength > 0)
  client.isOverBudget = true
  client.close(false)
  settle(client, server)
  t.match([server.read, server.ended], [60_000, 'end'])
  t.equal(client.kept, 0)
})

t.test('data for a closed socket is answered by a reset', async t => {
  const [client, server] = openPair()
  client.setReading(true)
  server.setReading(true)
  server.close(false)
  client.write(100)
  settle(client, server)
  t.equal(client.ended, 'ECONNRESET')
  t.ok(server.isForgotten)
})

t.test(
  'the channel is lost: an end where all is read, an error where the peer broke the protocol',
  async t => {
    for (const cause of [undefined, new Error('a frame of 3 bytes')]) {
      const [client, server] = openPair()
      client.setReading(true)
      server.write(10)
      client.lose(1, cause)
      server.lose(0, cause)
      settle(client, server)
      t.match([client.read, client.ended], [10, cause === undefined ? 'end' : 'ECONNRESET'])
    }
  },
)
