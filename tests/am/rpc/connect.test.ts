/**
 * Connect over active messages: the same client and routes as over HTTP, across processes: unary, three kinds of streams, headers,
 * trailers, errors with details, deadlines, cancellation, limits. `npm run test:connect` runs Connect's own cases.
 */
import {
  Code,
  ConnectError,
  createClient,
  createRouterTransport,
  type Interceptor,
} from '@connectrpc/connect'
import type { Test } from 'tap'
import { openEndpoint } from '../../../am/index.ts'
import { createFastTransport, serveConnect } from '../../../am/rpc/connect/index.ts'
import { WINDOW_BYTES } from '../../../am/rpc/index.ts'
import { DetailSchema, Echo } from '../../../bench/programs/echo_pb.ts'
import { Child } from '../../support/child.ts'
import { RELIABLE_PROCESS_DRIVER_LISTS } from '../../support/driver-lists.ts'
import { eventually, until, withWatchdog } from '../../support/until.ts'
import { testOver, type World } from '../../support/world.ts'
import { routes } from './connect-routes.ts'

const fixture = new URL('./connect-child.js', import.meta.url)

async function start(t: Test, world: World, interceptors: Interceptor[] = []) {
  const child = new Child(t, fixture, [world.list.name])
  const { name } = await child.receive<{ name: string }>()
  const endpoint = await world.open()
  const client = createClient(Echo, createFastTransport({ endpoint, to: name, interceptors }))
  return { child, name, endpoint, client }
}

const errorOf = (promise: Promise<unknown>): Promise<ConnectError> =>
  withWatchdog(
    'an error',
    promise.then(() => Promise.reject(new Error('it succeeded')), ConnectError.from),
  )

async function* repeat(count: number) {
  for (let i = 0; i < count; i++) yield { count: i, text: `${i}` }
}

testOver(
  RELIABLE_PROCESS_DRIVER_LISTS,
  'unary: values, headers, trailers, context values, interceptors',
  async (t, world) => {
    const urls: string[] = []
    const interceptor: Interceptor = next => async req => {
      urls.push(req.url)
      req.header.set('x-question', 'asked')
      const res = await next(req)
      res.header.set('x-intercepted', 'yes')
      return res
    }
    const { client, endpoint } = await start(t, world, [interceptor])
    const headers: Headers[] = []
    const data = new Uint8Array(200_000).fill(7)
    const answer = await client.unary(
      { text: 'hello', count: 3, data },
      { onHeader: header => headers.push(header), onTrailer: trailer => headers.push(trailer) },
    )
    t.match(answer, { text: 'hello', count: 3 })
    t.equal(Buffer.compare(answer.data, data), 0)
    t.equal(headers[0]?.get('x-answer'), 'asked')
    t.equal(headers[0]?.get('x-intercepted'), 'yes')
    t.equal(headers[0]?.get('x-caller'), endpoint.name, 'context values of the server')
    t.equal(headers[1]?.get('x-trailer'), 'last')
    t.match(urls[0], /\/fastsockets\.test\.Echo\/Unary$/)
    t.equal(
      (await client.unary({ text: 'x' }, { timeoutMs: 10_000 })).count,
      -1,
      'the handler sees the deadline',
    )
  },
)

testOver(
  RELIABLE_PROCESS_DRIVER_LISTS,
  'errors are those of HTTP: code, message, metadata, details',
  async (t, world) => {
    const { client, endpoint } = await start(t, world)
    const over = createClient(Echo, createRouterTransport(routes))
    for (const one of [over, client]) {
      const error = await errorOf(one.unary({ text: 'fail' }))
      t.match(error, { code: Code.FailedPrecondition, rawMessage: 'as told' })
      t.equal(error.metadata.get('x-meta'), 'data')
      t.match(error.findDetails(DetailSchema), [{ reason: 'asked to' }])
      const crash = await errorOf(one.unary({ text: 'crash' }))
      t.match(
        crash,
        { code: Code.Internal, rawMessage: 'internal error' },
        'what is no ConnectError stays secret',
      )
    }
    const silent = await world.open()
    const nobody = createClient(Echo, createFastTransport({ endpoint, to: silent.name }))
    t.equal((await errorOf(nobody.unary({}))).code, Code.Unimplemented)
    serveConnect(silent, router => router.service(Echo, {}))
    t.equal((await errorOf(nobody.unary({}))).code, Code.Unimplemented)
    const gone = createClient(
      Echo,
      createFastTransport({ endpoint, to: endpoint.name.replace(/[0-9a-f]{16}(?=@|$)/, '0'.repeat(16)) }),
    )
    t.match((await errorOf(gone.unary({}))).code, Code.Unavailable)
    const small = createClient(Echo, createFastTransport({ endpoint, to: silent.name, writeMaxBytes: 10 }))
    t.equal((await errorOf(small.unary({ text: 'longer than ten bytes' }))).code, Code.ResourceExhausted)
  },
)

testOver(RELIABLE_PROCESS_DRIVER_LISTS, 'server, client and bidirectional streams', async (t, world) => {
  const { client } = await start(t, world)
  const headers: Headers[] = []
  const counts: number[] = []
  const options = {
    onHeader: (header: Headers) => headers.push(header),
    onTrailer: (trailer: Headers) => headers.push(trailer),
  }
  for await (const { count } of client.server({ count: 1000 }, options)) counts.push(count)
  t.strictSame(
    counts,
    Array.from({ length: 1000 }, (_, i) => i),
  )
  t.equal(headers[0]?.get('x-answer'), 'stream')
  t.equal(headers[1]?.get('x-trailer'), 'last')
  t.equal((await client.client(repeat(1000))).count, 499_500)
  const texts: string[] = []
  for await (const { text } of client.bidi(repeat(500))) texts.push(text)
  t.strictSame(
    texts,
    Array.from({ length: 500 }, (_, i) => `re: ${i}`),
  )
  for await (const _ of client.server({ count: 0 })) t.fail('no message was asked for')

  const few: number[] = []
  const broken = (async () => {
    for await (const { count } of client.server({ count: -3 })) few.push(count)
  })()
  t.match(await errorOf(broken), { code: Code.DataLoss, rawMessage: 'broken' })
  t.strictSame(few, [0, 1, 2], 'what came before the error was delivered')

  // Each answer before the next question: nothing waits for the end of the questions.
  let answered = 0
  async function* oneByOne() {
    for (let i = 0; i < 5; i++) {
      await until('the answer', () => answered === i)
      yield { text: `${i}` }
    }
  }
  for await (const _ of client.bidi(oneByOne())) answered++
  t.equal(answered, 5)
})

testOver(RELIABLE_PROCESS_DRIVER_LISTS, 'deadlines, cancellation, back-pressure, death', async (t, world) => {
  const { client, child } = await start(t, world)
  await client.unary({}) // connects
  t.equal((await errorOf(client.unary({ text: 'hang' }, { timeoutMs: 30 }))).code, Code.DeadlineExceeded)
  const abort = new AbortController()
  const hanging = errorOf(client.unary({ text: 'hang' }, { signal: abort.signal }))
  await client.unary({})
  abort.abort()
  t.equal((await hanging).code, Code.Canceled)
  await eventually(
    'both handlers to know',
    async () => (await client.unary({ text: 'seen' })).text.split(',').length === 2,
  )
  t.strictSame((await client.unary({ text: 'seen' })).text.split(',').sort(), [
    'Canceled',
    'DeadlineExceeded',
  ])

  const data = new Uint8Array(16 * 1024)
  const made = async (): Promise<number> => (await client.unary({ text: 'seen' })).count
  const before = await made()
  for await (const _ of client.server({ count: 10_000, data })) {
    let last = -1
    await eventually('the handler to stop', async () => {
      const now = await made()
      const hasStopped = now === last
      last = now
      return hasStopped
    })
    const bound = WINDOW_BYTES / data.length + 3
    t.ok(
      last - before <= bound,
      `${last - before} messages for a reader that has taken one; the bound is ${bound}`,
    )
    break
  }

  const unary = errorOf(client.unary({ text: 'hang' }))
  const stream = errorOf(
    (async () => {
      for await (const { count } of client.server({ count: 1_000_000 }))
        if (count === 10) child.process.kill('SIGKILL')
    })(),
  )
  for (const error of [await unary, await stream]) {
    t.equal(error.code, Code.Unavailable)
    t.match(error.cause, { code: 'ERR_RPC_UNAVAILABLE', reason: 'PEER_DEAD' })
  }
})

testOver(
  RELIABLE_PROCESS_DRIVER_LISTS,
  'a transport opens an endpoint of its own, within one process as well',
  async (t, world) => {
    const server = await openEndpoint({ drivers: ['loopback', ...world.list.drivers] })
    t.teardown(() => server.close())
    const serving = serveConnect(server, routes)
    const client = createClient(Echo, createFastTransport({ to: server.name }))
    t.equal((await client.unary({ text: 'here' })).text, 'here')
    serving.close()
  },
)
