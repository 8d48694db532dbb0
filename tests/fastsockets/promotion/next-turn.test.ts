/** Writes that complete in the next turn, as those of connections that are about to move: no program sees another difference. */
import t, { type Test } from 'tap'
import { Child } from '../../support/child.ts'
import { program } from '../../support/relinked.ts'

type Seen = Record<string, string[]>

async function run(t: Test, mode: string): Promise<{ seen: Seen; received: unknown[] }> {
  const server = new Child(t, program('next-turn'), ['server'])
  const { port } = await server.receive<{ port: number }>()
  const client = new Child(t, program('next-turn'), ['client', String(port), mode])
  const seen = await client.receive<Seen>()
  const received: unknown[] = []
  for (const _ of Object.keys(seen)) received.push(await server.receive())
  return { seen, received }
}

t.test('events, callbacks and bytes are those of plain Node', async t => {
  const plain = await run(t, 'plain')
  const counted = await run(t, 'counted')
  for (const [name, events] of Object.entries(plain.seen)) t.strictSame(counted.seen[name], events, name)
  t.strictSame(counted.received, plain.received)
})
