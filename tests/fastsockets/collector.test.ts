/** What sockets make V8's collector do, counted. */
import t, { type Test } from 'tap'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

/** The first ones are for the compiler, and for the heap to find its size. */
const GIGABYTES = 4
/** 19 or so, if the limit of a small heap is left as it is. */
const MARKED_MAX = 6
/** 4 kB and more if the socket and its stream grow old. */
const OLD_BYTES_MAX = 2500

async function assertSeldomMarked(t: Test, server: string, client: string): Promise<void> {
  const measured = new Child(t, program('collector'), [server], relinked())
  const { port } = await measured.receive<{ port: number }>()
  new Child(t, program('collector'), [client, String(port)], relinked())
  let marked = Number.POSITIVE_INFINITY
  for (let i = 0; i < GIGABYTES; i++) ({ marked } = await measured.receive<{ marked: number }>())
  t.ok(marked <= MARKED_MAX, `${marked} times for the last gigabyte`)
}

t.test('a receiver with a small heap does not have it marked all the time', async t => {
  await assertSeldomMarked(t, 'server', 'sender')
})

t.test('what is left of a closed socket is collected young', async t => {
  const server = new Child(t, program('collector'), ['server'], relinked())
  const { port } = await server.receive<{ port: number }>()
  const dialer = new Child(t, program('collector'), ['dialer', String(port)], relinked())
  const { bytes } = await dialer.receive<{ bytes: number }>()
  t.ok(bytes < OLD_BYTES_MAX, `${bytes.toFixed()} bytes for each connection`)
})

t.test('a server that writes by native code does not have its heap marked all the time', async t => {
  await assertSeldomMarked(t, 'http2-server', 'http2-client')
})

t.test('a channel holds nothing of the context in which its first connection began', async t => {
  const child = new Child(t, program('kept-context'), [], relinked())
  t.strictSame(await child.receive(), { transport: 'loopback', isHeld: false })
})
