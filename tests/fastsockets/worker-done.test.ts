/** A worker that says that it is done may be terminated: what it has written arrives. */
import { once } from 'node:events'
import t from 'tap'
import net, { type AddressInfo } from '../../fastsockets/index.ts'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'
import { until } from '../support/until.ts'

const WORKERS = 10

t.test(
  "a worker writes a result, posts 'done' and is terminated: the result arrives, and its end",
  async t => {
    const texts: string[] = []
    const server = net.createServer(socket => {
      let text = ''
      socket.on('data', data => {
        text += data
      })
      socket.on('error', error => {
        text += ` ${(error as NodeJS.ErrnoException).code}`
      })
      socket.on('close', () => texts.push(text))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => void server.close())
    const { port } = server.address() as AddressInfo
    const child = new Child(t, program('done-worker'), [String(port), String(WORKERS)], relinked())
    const { transports } = await child.receive<{ transports: string[] }>()
    t.ok(transports.filter(transport => transport === 'shm').length > WORKERS / 2, transports.join(' '))
    await until('all ends', () => texts.length === WORKERS)
    t.strictSame(texts, Array(WORKERS).fill('result'))
  },
)
