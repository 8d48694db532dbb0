/** The suite `many`: round trips over held sockets, with a server that answers in any order. */
import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { HELD_SIZE, HELD_WINDOW } from '../../bench/contestants/contestant.ts'
import { dialSockets } from '../../bench/contestants/socket-halves.ts'
import { LatencyHistogram } from '../../bench/latency-histogram.ts'
import { FaultRandom } from '../../nic/fault/fault-random.ts'

const MS = 300
const LATE_MS = 8

t.test('a socket has one round trip under way, and all sockets alternate', async t => {
  const seed = Number(process.env.SEED ?? Date.now() % 1e6)
  t.comment(`SEED=${seed}`)
  const random = new FaultRandom(seed)
  let pendingMax = 0
  const answered = new Set<net.Socket>()
  const server = net.createServer({ noDelay: true }, socket => {
    let pending = 0
    socket.on('error', () => {})
    socket.on('data', async data => {
      pending += data.length
      pendingMax = Math.max(pendingMax, pending)
      if (data.length === HELD_SIZE) answered.add(socket)
      if (random.chance(0.5)) await delay(random.within(0, LATE_MS))
      pending -= data.length
      socket.write(data)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  const to = { host: '127.0.0.1', port }
  const client = await dialSockets(JSON.stringify({ echo: to, sink: to }))
  for (const count of [1, HELD_WINDOW, HELD_WINDOW + 1, 3 * HELD_WINDOW - 5]) {
    answered.clear()
    const latencies = new LatencyHistogram()
    const held = await client.hold?.(count)
    await held?.roundTrips(MS, latencies)
    await held?.close()
    t.equal(answered.size, count, `${count} sockets`)
    t.ok(latencies.count >= count)
  }
  t.equal(pendingMax, HELD_SIZE)
  await client.close()
  server.close()
})
