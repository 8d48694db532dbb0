/** What a round trip of 64 bytes over `net.Socket` allocates in the client, beside what Node's own path allocates. */
import t, { type Test } from 'tap'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

const FIXTURE = new URL('./socket-alloc-child.js', import.meta.url)
/** Without the large new space a scavenge hides the garbage. */
const FLAGS = ['--expose-gc', '--min-semi-space-size=128']

async function measure(t: Test, isRelinked: boolean): Promise<{ bytes: number; transport: string }> {
  const options = isRelinked ? relinked() : {}
  const server = new Child(t, program('server'), ['echo'], options)
  const { port } = await server.receive<{ port: number }>()
  const execArgv = [...FLAGS, ...(isRelinked ? (relinked().execArgv ?? []) : [])]
  const client = new Child(t, FIXTURE, [String(port)], { ...options, execArgv })
  return await client.receive<{ bytes: number; transport: string }>()
}

/**
 * Bytes that a relinked round trip may make beyond a plain one: the Buffer of what it reads, and the clock's numbers. On Node 26 a
 * plain socket's Buffer is a slice of a larger one: measured 270 there, 110 on Node 20.
 */
const MORE_MAX = 384

t.test('a round trip over a relinked socket allocates a Buffer more than a plain one, at most', async t => {
  const plain = await measure(t, false)
  const fast = await measure(t, true)
  t.comment(`${plain.bytes.toFixed(0)} bytes plain, ${fast.bytes.toFixed(0)} relinked`)
  t.equal(plain.transport, 'tcp')
  t.equal(fast.transport, 'shm')
  t.ok(plain.bytes > 300, `the measurement sees what Node allocates: ${plain.bytes} bytes`)
  t.ok(fast.bytes <= plain.bytes + MORE_MAX, `${fast.bytes} bytes a round trip, ${plain.bytes} plain`)
})
