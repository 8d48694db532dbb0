/** A program that resumes many sockets at once hears of them in several turns: its timers and other I/O come between. */
import t from 'tap'
import { Child } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'

const COUNT = 100

t.test(`${COUNT} paused sockets with bytes are resumed at once`, async t => {
  const server = new Child(t, program('resuming'), [], relinked())
  const { port } = await server.receive<{ port: number }>()
  const client = new Child(t, program('full-sockets'), [String(port), String(COUNT)], relinked())
  t.same(await client.receive(), { written: COUNT, transport: 'shm' })
  for (let accepted = 1; accepted <= COUNT; accepted++) t.same(await server.receive(), { accepted })
  const { most } = await server.ask<{ most: number }>({})
  t.ok(most < COUNT / 2, `${most} of ${COUNT} in one turn`)
})
