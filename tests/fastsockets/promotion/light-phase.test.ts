/** A program whose sockets have cost little has loaded nothing; one that goes on becomes fast, and so does its server. */
import t from 'tap'
import { readStatusOf } from '../../../fastsockets/status/read-status.ts'
import { Child, plainEnvironment } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'
import { eventually } from '../../support/until.ts'

t.test('connections start on TCP', async t => {
  const { FASTSOCKETS_START: _, ...env } = plainEnvironment()
  const server = new Child(t, program('light-phase'), ['server'], relinked({ env }))
  const { port } = await server.receive<{ port: number }>()
  const client = new Child(t, program('light-phase'), ['client', String(port)], relinked({ env }))
  t.strictSame(await client.ask({ count: 200 }), { isLoaded: false }, 'for a while')
  t.strictSame(await server.ask({}), { isLoaded: false }, 'likewise the server')
  await eventually('the move', async () => {
    await client.ask({ count: 500 })
    const sockets = readStatusOf(client.pid)[0]?.sockets ?? []
    return sockets.some(({ transport }) => transport === 'shm')
  })
  t.strictSame(await server.ask({}), { isLoaded: true })
  for (const { pid } of [client, server])
    await eventually('one row', () => {
      const sockets = readStatusOf(pid)[0]?.sockets ?? []
      return sockets.length === 1 && sockets[0]?.transport === 'shm'
    })
  await client.kill()
})

t.test('a client that only reads becomes fast', async t => {
  const { FASTSOCKETS_START: _, ...env } = plainEnvironment()
  const server = new Child(t, program('light-phase'), ['source'], relinked({ env }))
  const { port } = await server.receive<{ port: number }>()
  const client = new Child(t, program('light-phase'), ['reader', String(port)], relinked({ env }))
  const moved = await eventually('the move', () => {
    const sockets = readStatusOf(client.pid)[0]?.sockets ?? []
    return sockets.find(({ transport }) => transport === 'shm')
  })
  await eventually('more', () => (readStatusOf(client.pid)[0]?.sockets[0]?.bytesIn ?? 0) > moved.bytesIn)
  await client.kill()
})

t.test('what a program writes to standard output is no reason to load anything', async t => {
  const { FASTSOCKETS_START: _, ...env } = plainEnvironment()
  const stdio = ['ignore', 'pipe', 'pipe', 'ipc'] as const
  const printer = new Child(t, program('light-phase'), ['printer'], relinked({ env, stdio: [...stdio] }))
  printer.process.stdout?.resume()
  t.equal(await printer.receive(), 'printed')
  t.strictSame(await printer.ask({}), { isLoaded: false })
  await printer.kill()
})
