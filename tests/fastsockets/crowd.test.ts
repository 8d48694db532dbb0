/** Many connections between two processes: all on one channel, none in the way of another, and cheap. */
import t, { type Test } from 'tap'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

interface Opened {
  readonly wires: Readonly<Record<string, number>>
  readonly descriptors: number
}

async function start(t: Test): Promise<{ server: Child; client: Child }> {
  const server = new Child(t, program('crowd'), ['server'], relinked())
  const { port } = await server.receive<{ port: number }>()
  const client = new Child(t, program('crowd'), ['client', String(port)], relinked())
  await client.receive()
  return { server, client }
}

t.test('1,000 sockets on one channel: 10 stopped readers stop nobody else', async t => {
  const { client } = await start(t)
  t.match(await client.ask<Opened>({ open: 1000 }), { wires: { shm: 1000 } })
  // 4 MB through each that is stopped: more than two windows, and what two streams hold at either end.
  const running = await client.ask({ exchange: 400_000, stopped: 10 })
  t.strictSame(
    running,
    { whole: 990, halfway: 10, wrong: 0 },
    'the others have all of it, and the right bytes',
  )
  t.strictSame(await client.ask({ resume: true }), { whole: 1000, halfway: 0, wrong: 0 })
})
