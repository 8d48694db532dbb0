/** Many connections between two processes: all on one channel, none in the way of another, and cheap. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { REFUSAL } from '../../fastsockets/bootstrap/bootstrap-layout.ts'
import { StreamCounts } from '../../fastsockets/status/stream-counts.ts'
import { Stream } from '../../fastsockets/stream/stream.ts'
import { ACCEPT, CONNECT, REFUSE, STREAMS_MAX, WINDOW } from '../../fastsockets/stream/stream-layout.ts'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'
import { SocketLiar } from '../support/socket-liar.ts'
import { until } from '../support/until.ts'

/** Of an idle connection, at either end: some three times what was measured (fastsockets/README.md). */
const CONNECTION_BYTES_MAX = 20_000
/** Sockets that the flooded side has asked for itself. */
const OWN = 100

interface Usage {
  readonly descriptors: number
  readonly bytes: number
}

async function start(t: Test): Promise<{ server: Child; client: Child }> {
  const options = relinked({ execArgv: ['--expose-gc'] })
  const server = new Child(t, program('crowd'), ['server'], options)
  const { port } = await server.receive<{ port: number }>()
  const client = new Child(t, program('crowd'), ['client', String(port)], options)
  await client.receive()
  return { server, client }
}

t.test('1,000 sockets on one channel: 10 stopped readers stop no other socket', async t => {
  const { client } = await start(t)
  t.strictSame(await client.ask({ open: 1000 }), { shm: 1000 })
  // 16 MB through each that is stopped: more than the windows of both directions, and what two streams hold at either end.
  const running = await client.ask({ exchange: 400_000, stopped: 10 })
  t.strictSame(
    running,
    { whole: 990, halfway: 10, wrong: 0 },
    'the others have all of it, and the right bytes',
  )
  t.strictSame(await client.ask({ resume: true }), { whole: 1000, halfway: 0, wrong: 0 })
})

t.test('10,000 connections cost no descriptors, and little memory', async t => {
  const { server, client } = await start(t)
  const usages = async (): Promise<Usage[]> => [
    await server.ask<Usage>({ count: true }),
    await client.ask<Usage>({ count: true }),
  ]
  await client.ask({ open: 100 })
  const before = await usages()
  t.strictSame(await client.ask({ open: 10_000 }), { shm: 9_900 })
  for (const [index, { descriptors, bytes }] of (await usages()).entries()) {
    const was = before[index] as Usage
    t.equal(descriptors, was.descriptors, `no descriptor more at end ${index}`)
    const each = (bytes - was.bytes) / 9_900
    t.ok(each < CONNECTION_BYTES_MAX, `${Math.round(each)} bytes for each at end ${index}`)
  }
  t.strictSame(await client.ask({ exchange: 100 }), { whole: 10_000, halfway: 0, wrong: 0 })
})

/** A client that may have 200 descriptors, and what became of its connects. */
async function limited(
  t: Test,
  port: number,
  files: 'none' | 'all' | 'burst',
  options = relinked(),
): Promise<object> {
  const shell = ['-c', 'ulimit -n 200; exec "$0" "$@"', process.execPath, ...(options.execArgv ?? [])]
  const limits = { execPath: '/bin/sh', execArgv: shell }
  return await new Child(t, program('few-descriptors'), [String(port), files], limits).receive()
}

t.test('a process that may open 200 files has 400 connections, where a plain one has fewer', async t => {
  const server = new Child(t, program('crowd'), ['server'], relinked())
  const { port } = await server.receive<{ port: number }>()
  t.strictSame(await limited(t, port, 'none'), { connected: 400, wire: 'shm' })
  t.match(await limited(t, port, 'none', {}), { error: 'EMFILE' })
})

t.test('more connects in one turn than there are credits are all fast', async t => {
  const server = new Child(t, program('crowd'), ['server'], relinked())
  const { port } = await server.receive<{ port: number }>()
  t.strictSame(await limited(t, port, 'burst'), { connected: 5001, wire: 'shm' })
})

t.test('one that may open no more is told EMFILE, as a plain one', async t => {
  const server = new Child(t, program('crowd'), ['server'], relinked())
  const { port } = await server.receive<{ port: number }>()
  t.match(await limited(t, port, 'all', {}), { connected: 0, error: 'EMFILE' })
  t.match(await limited(t, port, 'all'), { connected: 0, error: 'EMFILE', wire: 'tcp' })
})

t.test('a peer that floods with CONNECT gets so many sockets, and no more', async t => {
  const liar = new SocketLiar(t)
  const address = Buffer.from('127.0.0.1')
  const flood = async (first: number, last: number): Promise<void> => {
    for (let from = first; from <= last; ) {
      if (liar.say(CONNECT, [from, 80, WINDOW, 4], address)) from++
      else await nextTurn()
    }
    await until('all answers', () => liar.said.length >= last)
  }
  await flood(1, 1)
  // Those that this side has asked for count, too.
  const { channel } = liar.stream
  for (let i = 0; i < OWN; i++)
    channel.streams.put(
      new Stream(
        channel,
        channel.channel,
        channel.streams.allocateId(),
        'client',
        WINDOW,
        new StreamCounts(),
      ),
    )
  await flood(2, STREAMS_MAX)
  const answers = (handler: number) => liar.said.filter(said => said.handler === handler)
  t.equal(answers(ACCEPT).length, STREAMS_MAX - OWN)
  const refusals = answers(REFUSE).map(({ words }) => words[1])
  t.strictSame(refusals, Array(OWN).fill(REFUSAL.LIMIT))
  t.notOk(liar.isGone, 'the others of that channel go on')
})
