/** Receive posting: requests and responses do not touch the socket buffer, by whatever road a program reads. */
import { once } from 'node:events'
import t from 'tap'
import net, { type AddressInfo, transportOf } from '../../fastsockets/index.ts'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

const SHARE_MIN = 0.95
/** Of the requests, and of the responses: programs/posting.ts. */
const BYTES = 100 * (1 + 64 + 1500 + 20_000 + 200_000)

interface Received {
  readonly transport: string
  readonly bytesIn: number
  readonly bytesBuffered: number
}

for (const road of ['raw', 'onread', 'data']) {
  t.test(`${road}: more than 95 % of the bytes skip the socket buffer`, async t => {
    const server = new Child(t, program('posting'), [road, 'server'], relinked())
    const { port } = await server.receive<{ port: number }>()
    const client = new Child(t, program('posting'), [road, 'client', String(port)], relinked())
    for (const end of [client, server]) {
      const { transport, bytesIn, bytesBuffered } = await end.receive<Received>()
      t.equal(transport, 'shm')
      t.equal(bytesIn, BYTES)
      const share = 1 - bytesBuffered / bytesIn
      t.ok(share > SHARE_MIN, `${(100 * share).toFixed(2)} % at the ${end === client ? 'client' : 'server'}`)
    }
  })
}

t.test('a reader with a buffer of its own that pauses has each byte buffered once', async t => {
  const sent = Buffer.from(Array.from({ length: 200_000 }, (_, i) => i % 251))
  const server = net.createServer(socket => void socket.end(sent)).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const buffer = Buffer.alloc(1000)
  const received: Buffer[] = []
  const socket = net.connect({
    port: (server.address() as AddressInfo).port,
    host: '127.0.0.1',
    onread: {
      buffer,
      callback: count => {
        received.push(Buffer.from(buffer.subarray(0, count)))
        setImmediate(() => socket.resume())
        return false
      },
    },
  })
  await once(socket, 'end')
  const { transport, counts } = transportOf(socket)
  t.equal(transport, 'loopback')
  t.ok(Buffer.concat(received).equals(sent), 'all of it, in order')
  t.ok((counts?.bytesBuffered ?? 0) <= sent.length, `${counts?.bytesBuffered} bytes were buffered`)
})
