/** What the process does whose sockets keep more unread bytes than its budget allows. */
import { once } from 'node:events'
import t, { type Test } from 'tap'
import net, { type Socket, transportOf } from '../../fastsockets/index.ts'
import { SHRUNK_WINDOW, WINDOW } from '../../fastsockets/stream/stream-layout.ts'
import { isOverBudget, keptBytes, setUnreadBudget, shareOf } from '../../fastsockets/stream/unread-budget.ts'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'
import { until } from '../support/until.ts'

/** What a worker keeps in programs/unread-worker.ts, and the steps in which other threads know it. */
const UNREAD = 1 << 20
const STEP = 64 * 1024

async function connected(t: Test, port: number): Promise<Socket> {
  const socket = net.connect(port, '127.0.0.1')
  socket.on('error', () => {})
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

/** Until nothing has come for a while. */
async function settledKept(): Promise<number> {
  for (let before = -1; before !== keptBytes(); ) {
    before = keptBytes()
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  return keptBytes()
}

async function readThenPause(socket: Socket, length: number): Promise<void> {
  const from = socket.bytesRead
  socket.resume()
  await until('bytes', () => socket.bytesRead - from >= length)
  socket.pause()
}

t.test('beyond the budget a peer has no more than the shrunk window under way', async t => {
  const server = new Child(t, program('server'), ['flood'], relinked())
  const { port } = await server.receive<{ port: number }>()
  const hog = await connected(t, port)
  hog.pause()
  const socket = await connected(t, port)
  socket.pause()
  t.strictSame(
    [hog, socket].map(one => transportOf(one).transport),
    ['shm', 'shm'],
  )
  const full = await settledKept()
  t.ok(full > WINDOW, `${full} bytes are kept of two sockets`)
  t.teardown(() => setUnreadBudget())

  setUnreadBudget(WINDOW / 4)
  await readThenPause(socket, 3 * WINDOW)
  const shrunk = await settledKept()
  t.ok(shrunk <= WINDOW + SHRUNK_WINDOW, `${shrunk} bytes beyond the budget`)

  setUnreadBudget()
  await readThenPause(socket, 3 * WINDOW)
  const restored = await settledKept()
  t.ok(restored > WINDOW + 4 * SHRUNK_WINDOW, `${restored} bytes within the budget`)
})

t.test('a peer that fills its share has small windows; other peers keep the fast way and theirs', async t => {
  const BUDGET = 64 << 20
  const SOCKETS = 64
  setUnreadBudget(BUDGET)
  t.teardown(() => setUnreadBudget())
  const hog = new Child(t, program('server'), ['flood'], relinked())
  const other = new Child(t, program('server'), ['flood'], relinked())
  const { port } = await hog.receive<{ port: number }>()
  const { port: otherPort } = await other.receive<{ port: number }>()
  for (let i = 0; i < SOCKETS; i++) (await connected(t, port)).pause()
  const filled = await settledKept()
  t.ok(filled > shareOf(BUDGET) / 2, `${filled} bytes are kept for one peer`)
  t.ok(filled <= shareOf(BUDGET) + SOCKETS * SHRUNK_WINDOW, `${filled} bytes of its share`)
  t.equal(isOverBudget(), false)

  const socket = await connected(t, otherPort)
  socket.pause()
  t.match(transportOf(socket), { transport: 'shm' })
  const more = (await settledKept()) - filled
  t.ok(more > 8 * SHRUNK_WINDOW, `${more} bytes of the other peer`)
})

t.test(
  'threads count together: a worker keeps unread bytes, and new peers of the main thread get TCP',
  async t => {
    const child = new Child(t, program('unread-worker'), [], relinked())
    const { port, kept } = await child.receive<{ port: number; kept: number }>()
    t.ok(kept > UNREAD - STEP, `${kept} bytes are known to the main thread`)

    t.match(transportOf(await connected(t, port)), { transport: 'tcp', reason: { code: 'LIMIT' } }, 'here')
    const server = new Child(t, program('server'), ['echo'], relinked())
    const { port: echo } = await server.receive<{ port: number }>()
    t.match(await child.ask({ connect: echo }), { transport: 'tcp', reason: { code: 'LIMIT' } }, 'there')

    const left = await child.ask<{ kept: number }>({ terminate: true })
    t.ok(left.kept < STEP, `${left.kept} bytes are left of a worker that is terminated`)
    t.match(await child.ask({ connect: echo }), { transport: 'shm' })
  },
)
