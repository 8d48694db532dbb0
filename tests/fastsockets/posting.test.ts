/** Receive posting: requests and responses do not touch the socket buffer, by whatever road a program reads. */
import t from 'tap'
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
