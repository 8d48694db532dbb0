/** Many raw sockets in one place, polled and waited for, over shared memory and over TCP. */
import t, { type Test } from 'tap'
import { CompletionQueue, connect, listen, type RawSocket } from '../../../fastsockets/raw/index.ts'
import { Child, plainEnvironment } from '../../support/child.ts'
import { program } from '../../support/relinked.ts'
import { withWatchdog } from '../../support/until.ts'

const SPIN_MS = 20_000

async function sockets(
  t: Test,
  behaviour: string,
  env: NodeJS.ProcessEnv,
  count: number,
): Promise<RawSocket[]> {
  const server = new Child(t, program('raw-server'), [behaviour], { env })
  const { port } = await server.receive<{ port: number }>()
  const made: RawSocket[] = []
  for (let i = 0; i < count; i++) made.push(await connect({ port, host: '127.0.0.1' }))
  t.teardown(() => {
    for (const socket of made) socket.close()
  })
  return made
}

for (const [wire, env] of [
  ['shm', plainEnvironment()],
  ['tcp', { ...plainEnvironment(), FASTSOCKETS_DISABLE: '1' }],
] as const) {
  t.test(`over ${wire}: a loop of polls serves many sockets`, async t => {
    const made = await sockets(t, 'echo', env, 20)
    const queue = new CompletionQueue()
    for (const socket of made) {
      t.equal(socket.transport.transport, wire)
      queue.add(socket)
      await socket.send(Buffer.from('hello'))
    }
    const buffer = Buffer.alloc(100)
    const received = new Map<unknown, string>()
    const isDone = (): boolean => [...received.values()].join('').length === 100
    for (const end = performance.now() + SPIN_MS; !isDone() && performance.now() < end; ) {
      const socket = queue.poll() as RawSocket | undefined
      if (socket === undefined) continue
      const length = socket.tryRecv(buffer) ?? 0
      received.set(socket, `${received.get(socket) ?? ''}${buffer.toString('latin1', 0, length)}`)
    }
    t.strictSame(
      made.map(socket => received.get(socket)),
      made.map(() => 'hello'),
    )
    t.equal(queue.poll(), undefined, 'no member is ready any more')
  })

  t.test(`over ${wire}: a wait ends with the first that is ready, and names it until it is read`, async t => {
    const [first, second] = (await sockets(t, 'echo', env, 2)) as [RawSocket, RawSocket]
    const queue = new CompletionQueue()
    queue.add(first)
    queue.add(second)
    const waiting = queue.wait()
    await t.rejects(queue.wait(), { message: 'one wait at a time', code: 'ERR_FASTSOCKETS_WAITING' })
    await second.send(Buffer.from('ab'))
    t.equal(await withWatchdog('the second socket', waiting), second)
    t.equal(await queue.wait(), second, 'it was not read')
    const byte = Buffer.alloc(1)
    t.equal(second.tryRecv(byte), 1)
    t.equal(await queue.wait(), second, 'nor all of it')
    t.equal(second.tryRecv(byte), 1)
    first.shutdown()
    t.equal(await withWatchdog('the end', queue.wait()), first, 'an end is something to read')
    t.equal(first.tryRecv(byte), 0)
    first.close()
    await second.send(Buffer.from('c'))
    t.equal(await withWatchdog('the second socket', queue.wait()), second, 'who is closed is no member')
    queue.remove(second)
    t.equal(queue.poll(), undefined)
  })
}

t.test('a member of one queue is refused by another, and is taken once it is removed', async t => {
  const [socket] = (await sockets(t, 'echo', plainEnvironment(), 1)) as [RawSocket]
  const server = await listen({ host: '127.0.0.1' })
  const first = new CompletionQueue()
  const second = new CompletionQueue()
  for (const member of [socket, server]) {
    first.add(member)
    first.add(member)
    t.throws(() => second.add(member), { code: 'ERR_FASTSOCKETS_QUEUED' })
  }
  const waiting = first.wait()
  await socket.send(Buffer.from('x'))
  t.equal(await withWatchdog('the first queue', waiting), socket, 'it is still a member of the first')
  first.remove(socket)
  second.add(socket)
  t.equal(await withWatchdog('the second queue', second.wait()), socket)
  t.equal(first.poll(), undefined)
  server.close()
  t.equal(first.poll(), undefined)
})

t.test('what is closed cannot become a member', async t => {
  const server = await listen({ host: '127.0.0.1' })
  const made = [
    ...(await sockets(t, 'echo', plainEnvironment(), 1)),
    ...(await sockets(t, 'echo', { ...plainEnvironment(), FASTSOCKETS_DISABLE: '1' }, 1)),
    server,
  ]
  const queue = new CompletionQueue()
  for (const member of made) {
    member.close()
    t.throws(() => queue.add(member), { code: 'EBADF' })
  }
  t.equal(queue.poll(), undefined)
})

t.test('an abort signal ends a wait, and another one may follow', async t => {
  const [socket] = (await sockets(t, 'echo', plainEnvironment(), 1)) as [RawSocket]
  const queue = new CompletionQueue()
  queue.add(socket)
  const reason = new Error('enough')
  const controller = new AbortController()
  const waiting = queue.wait({ signal: controller.signal })
  controller.abort(reason)
  await t.rejects(waiting, reason)
  await t.rejects(queue.wait({ signal: controller.signal }), reason)
  await socket.send(Buffer.from('x'))
  t.equal(await withWatchdog('the socket', queue.wait()), socket)
})

t.test('a server is ready when a connection waits to be accepted', async t => {
  const server = await listen({ host: '127.0.0.1' })
  const queue = new CompletionQueue()
  queue.add(server)
  const waiting = queue.wait()
  const client = await connect({ host: '127.0.0.1', port: server.address.port })
  t.equal(await withWatchdog('the connection', waiting), server)
  const accepted = server.tryAccept() as RawSocket
  t.equal(accepted.transport.transport, 'shm')
  t.equal(server.tryAccept(), undefined)
  t.equal(queue.poll(), undefined)
  queue.add(accepted)
  await client.send(Buffer.from('x'))
  t.equal(await withWatchdog('the bytes', queue.wait()), accepted)
  server.close()
  client.close()
  accepted.close()
  t.equal(queue.poll(), undefined)
})
