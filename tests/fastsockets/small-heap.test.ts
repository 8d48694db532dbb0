/**
 * V8 of Node 20 to 26 marks a heap only once its old generation has more than 8 MB. From then on every 32 MB of buffers may have it mark all of
 * it again, which took a quarter of the rate of a small server of files: what we add to a small program must leave room.
 */
import type { ForkOptions } from 'node:child_process'
import t, { type Test } from 'tap'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

const MB = 2 ** 20
/** Where V8 begins. */
const ACTIVATION = 8 * MB
/** What a relinked program may have more than a plain one. Measured: 3.3 to 3.7 MB on Node 20, 3.5 on Node 26; 3.9 and 4.3 before decision 0087. */
const ADDED_MAX = 3.9 * MB
const REQUESTS = 2000

t.test('a small server and its client that are relinked keep little more than plain ones', async t => {
  const plain = await keptAfterRequests(t, {})
  const fast = await keptAfterRequests(t, relinked({}))
  for (const side of ['server', 'client'] as const) {
    const added = fast[side] - plain[side]
    t.ok(added > 0, `the ${side} is relinked`)
    t.ok(added < ADDED_MAX, `${side}: ${(added / MB).toFixed(2)} MB more`)
  }
  const isRoomy = process.versions.v8.startsWith('11.')
  t.ok(fast.server < ACTIVATION, `V8 does not mark it: ${(fast.server / MB).toFixed(2)} MB`, {
    skip: isRoomy ? false : 'on this Node an empty program has more than 5 MB',
  })
})

async function keptAfterRequests(t: Test, options: ForkOptions): Promise<{ server: number; client: number }> {
  const forked = { ...options, execArgv: ['--expose-gc', ...(options.execArgv ?? [])] }
  const server = new Child(t, program('small-heap'), [], forked)
  const { port } = await server.receive<{ port: number }>()
  const client = new Child(t, program('small-heap'), [String(port)], forked)
  await client.receive()
  client.send({ count: REQUESTS })
  const { keptBytes: clientKept } = await client.receive<{ keptBytes: number }>()
  server.send({})
  const { keptBytes: serverKept } = await server.receive<{ keptBytes: number }>()
  return { server: serverKept, client: clientKept }
}
