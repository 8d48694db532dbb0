/** What a connection over an open channel does not do: each of these cost a tenth of its time. */
import { once } from 'node:events'
import t from 'tap'
import net, { transportOf } from '../../../fastsockets/index.ts'
import { Child } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'

t.test('no environment variable of ours is read for it', async t => {
  const echo = new Child(t, program('server'), ['echo'], relinked())
  const { port } = await echo.receive<{ port: number }>()
  const connect = async (): Promise<void> => {
    const socket = net.connect(port, '127.0.0.1')
    socket.resume().end('hello')
    await once(socket, 'connect')
    t.equal(transportOf(socket).transport, 'shm')
    await once(socket, 'close')
  }
  await connect()
  const { env } = process
  const read = new Set<string>()
  t.teardown(() => {
    process.env = env
  })
  process.env = new Proxy(env, {
    get: (target, name: string) => {
      read.add(name)
      return target[name]
    },
  })
  t.equal(process.env.FASTSOCKETS_DATAGRAMS, undefined)
  for (let count = 0; count < 3; count++) await connect()
  t.strictSame(
    [...read].filter(name => name.startsWith('FASTSOCKETS_')),
    ['FASTSOCKETS_DATAGRAMS'],
  )
})
