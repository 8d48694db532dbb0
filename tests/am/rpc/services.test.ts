/** Services by name: types, errors, deadlines, cancellation, codecs, streams, death; across processes, over every driver. */

import { from, lastValueFrom, toArray } from 'rxjs'
import type { Test } from 'tap'
import {
  connectService,
  defineService,
  method,
  RPC_HANDLER,
  RpcError,
  serve,
  WINDOW_BYTES,
  WINDOW_ITEMS,
} from '../../../am/rpc/index.ts'
import { Child } from '../../support/child.ts'
import { PROCESS_DRIVER_LISTS, RELIABLE_PROCESS_DRIVER_LISTS } from '../../support/driver-lists.ts'
import { eventually, withWatchdog } from '../../support/until.ts'
import { testOver, type World } from '../../support/world.ts'
import { printer, textOf } from './printer.ts'
import { handlers } from './service-child.ts'

const fixture = new URL('./service-child.js', import.meta.url)

async function connect(t: Test, world: World) {
  const child = new Child(t, fixture, [world.list.name])
  const { name } = await child.receive<{ name: string }>()
  const endpoint = await world.open()
  const client = await withWatchdog('the service', connectService(endpoint, name, printer))
  return { child, name, endpoint, client }
}

testOver(PROCESS_DRIVER_LISTS, 'values of every kind and size come back as they were', async (t, world) => {
  const { client } = await connect(t, world)
  const at = new Date(0)
  t.strictSame(await client.print({ text: 'abc', copies: 2, at }), {
    pages: 6,
    job: { text: 'abc', copies: 2, at },
  })
  const values = [undefined, null, 1n, 'x', new Map([[1, new Set([2])]]), { deep: [1, { a: 'b' }] }]
  for (const value of values) t.strictSame(await client.echo(value), value)
  for (const text of ['', 'ü€😀', 'a lone surrogate: \ud800', 'x'.repeat(200_000), 'ü'.repeat(70_000)])
    t.ok((await client.echo(text)) === text, `a string of ${text.length}`)
  // Across containers it is not the number that this process knows.
  t.ok((await client.pid()) > 0, 'handlers keep their object')
  for (const value of [null, 'x', { deep: [1, { a: 'b' }] }]) {
    t.strictSame(await client.json(value), value, 'JSON')
    t.strictSame(await client.packed(value), value, 'MessagePack')
  }
  t.match(await client.text(textOf('abc')), { $typeName: 'fastsockets.test.Text', text: 're: abc', count: 3 })
  t.equal(await client.nothing(), undefined)
  for (const size of [0, 1, 65_535, 65_536, 65_537, 1 << 20, 5_000_000]) {
    const bytes = new Uint8Array(size).map((_, i) => i * 31)
    t.equal(Buffer.compare(await client.bytes(bytes), bytes), 0, `${size} bytes`)
  }
  const sizes = await Promise.all(
    Array.from({ length: 300 }, async (_, i) => (await client.bytes(new Uint8Array(i * 700))).length),
  )
  t.strictSame(
    sizes,
    Array.from({ length: 300 }, (_, i) => i * 700),
    'many at once, more than there are credits',
  )
})

testOver(
  RELIABLE_PROCESS_DRIVER_LISTS,
  'a caller may change its bytes at once, and has its own kind of array at the other side',
  async (t, world) => {
    const { client, child } = await connect(t, world)
    // More than the queue of the driver holds: the last of them wait here.
    const calls = Array.from({ length: 8 }, async (_, i) => {
      const value = i % 2 === 0 ? new Uint8Array(3_000_000) : Buffer.alloc(3_000_000)
      value.fill(i + 1)
      const answer = (i % 4 < 2 ? client.echo(value) : client.bytes(value)) as Promise<Uint8Array>
      value.fill(0xff)
      const bytes = await answer
      t.equal(bytes.length, value.length)
      t.ok(
        bytes.every(byte => byte === i + 1),
        `call ${i}`,
      )
      if (i % 4 < 2) t.equal(Buffer.isBuffer(bytes), Buffer.isBuffer(value))
    })
    await withWatchdog('all calls', Promise.all(calls))
    t.strictSame(await client.echo(new Uint8Array(64)), new Uint8Array(64))
    t.strictSame(await client.echo(new Uint8Array(0)), new Uint8Array(0))
    const floats = (await client.echo(new Uint8Array(new Float64Array([1, 2, 3]).buffer))) as Uint8Array
    t.strictSame([...new Float64Array(floats.buffer, floats.byteOffset, 3)], [1, 2, 3], 'aligned')
    const lost = client.bytes(new Uint8Array(50_000_000)).catch(error => error)
    await child.kill()
    t.match(await lost, { code: 'ERR_RPC_UNAVAILABLE' })
  },
)

testOver(
  RELIABLE_PROCESS_DRIVER_LISTS,
  "every destination is the program's, and no other handler than 255 is RPC's",
  async (t, world) => {
    const { name } = await new Child(t, fixture, [world.list.name]).receive<{ name: string }>()
    const endpoint = await world.open()
    await endpoint.map(65_535, name)
    const client = await connectService(endpoint, name, printer)
    t.equal(await client.echo(1), 1)
    endpoint.unmap(65_535)
    await endpoint.map(65_535, name)
    t.equal(await client.echo(2), 2, 'the client has no entry of the table')
    t.throws(() => endpoint.setHandler(RPC_HANDLER, () => {}), { code: 'ERR_AM_HANDLER_TAKEN' })
    t.throws(() => endpoint.setHandler(RPC_HANDLER, undefined), { code: 'ERR_AM_HANDLER_TAKEN' })
    t.throws(() => endpoint.messages(RPC_HANDLER)[Symbol.asyncIterator](), { code: 'ERR_AM_HANDLER_TAKEN' })
    endpoint.setHandler(RPC_HANDLER - 1, () => {})
    t.equal(await client.echo(3), 3)
    const taken = await world.open()
    taken.setHandler(RPC_HANDLER, () => {})
    t.throws(() => serve(taken, printer, handlers), { code: 'ERR_RPC_TAKEN' })
    await t.rejects(connectService(taken, name, printer), { code: 'ERR_RPC_TAKEN' })
  },
)

testOver(
  PROCESS_DRIVER_LISTS,
  'an error crosses with code, message, cause and details, and ends its call only',
  async (t, world) => {
    const { client } = await connect(t, world)
    const other = client.count(3)
    await other.next()
    const error = await client.fail('out of order').catch(error => error)
    t.ok(error instanceof RpcError)
    t.match(error, {
      code: 'E_PRINTER',
      message: 'out of order',
      remoteName: 'RangeError',
      details: { tray: 2 },
    })
    t.match(error.cause, { code: 'E_PAPER', message: 'no paper', remoteName: 'TypeError' })
    t.strictSame(await other.next(), { value: 1, done: false }, 'the stream beside it goes on')
    const items: number[] = []
    const jam = (async () => {
      for await (const item of client.breaks()) items.push(item)
    })()
    await t.rejects(jam, { code: 'E_JAM', message: 'jammed' })
    t.strictSame(items, [1], 'what came before the error was delivered')
    await t.rejects(
      client.echo(() => {}),
      /could not be cloned/,
      'what cannot be encoded',
    )
    await t.rejects(client.bytes(new Uint8Array(65 << 20)), { code: 'ERR_RPC_PAYLOAD' })
    t.equal(await client.echo(1), 1)
  },
)

testOver(RELIABLE_PROCESS_DRIVER_LISTS, 'deadlines and cancellation reach the handler', async (t, world) => {
  const { client } = await connect(t, world)
  await t.rejects(client.hang(undefined, { timeoutMs: 30 }), { code: 'ERR_RPC_DEADLINE' })
  const abort = new AbortController()
  const hanging = client.hang(undefined, { signal: abort.signal })
  abort.abort(new Error('no longer wanted'))
  await t.rejects(hanging, /no longer wanted/)
  await t.rejects(
    client.hang(undefined, { signal: AbortSignal.abort() }),
    { name: 'AbortError' },
    'before it began',
  )
  await eventually('both handlers to know', async () => (await client.cancelled()).length === 2)
  t.strictSame((await client.cancelled()).sort(), ['ERR_RPC_CANCELLED', 'ERR_RPC_DEADLINE'])
  await t.rejects(client.hang(undefined, { timeoutMs: -1 }), { code: 'ERR_AM_ARGUMENT' })
})

testOver(
  PROCESS_DRIVER_LISTS,
  'a stream has every item in order; an Observable is one, both ways',
  async (t, world) => {
    const { client } = await connect(t, world)
    const expected = Array.from({ length: 1000 }, (_, i) => i)
    const items: number[] = []
    for await (const item of client.count(1000)) items.push(item)
    t.strictSame(items, expected)
    t.strictSame(await lastValueFrom(from(client.observed(1000)).pipe(toArray())), expected)
    const some: number[] = []
    for await (const item of client.count(1e9)) {
      some.push(item)
      if (item === 9) break
    }
    t.strictSame(some, expected.slice(0, 10), 'leaving the loop ends it')
    await t.rejects(
      lastValueFrom(from(client.observed(1e6))),
      { code: 'ERR_RPC_EXHAUSTED' },
      'an observable that does not wait is bounded',
    )
    const abort = new AbortController()
    const endless = client.count(1e9, { signal: abort.signal })
    await endless.next()
    abort.abort(new Error('enough'))
    await t.rejects(endless.next(), /enough/)
    await t.rejects(lastValueFrom(from(client.count(1e9, { timeoutMs: 20 }))), { code: 'ERR_RPC_DEADLINE' })
  },
)

testOver(
  RELIABLE_PROCESS_DRIVER_LISTS,
  'a slow reader of 1 GB holds a bounded number of messages',
  async (t, world) => {
    const { client } = await connect(t, world)
    const BYTES = 16 * 1024
    const ITEMS = Math.ceil((world.list.name === 'shm' ? 1e9 : 1e8) / BYTES)
    const stream = client.flood({ items: ITEMS, bytes: BYTES })
    await stream.next()
    // The reader takes nothing: the handler stops, and other calls go on.
    let before = -1
    await eventually('the handler to stop', async () => {
      const now = await client.produced()
      const hasStopped = now === before
      before = now
      return hasStopped
    })
    const bound = WINDOW_BYTES / BYTES + 2
    t.ok(before <= bound, `${before} items were made for a reader that has taken one; the bound is ${bound}`)
    t.ok(stream.heldItems > 0 && stream.heldItems <= bound && bound < WINDOW_ITEMS)
    let read = 1
    let mostHeld = 0
    for await (const item of stream) {
      if (new DataView(item.buffer, item.byteOffset).getUint32(0) !== read) t.fail(`item ${read} is another`)
      mostHeld = Math.max(mostHeld, stream.heldItems)
      read++
    }
    t.equal(read, ITEMS)
    t.ok(mostHeld <= bound, `at most ${mostHeld} items were held`)
  },
)

testOver(
  RELIABLE_PROCESS_DRIVER_LISTS,
  'the death of the process answers every call, and the next call finds the next one',
  async (t, world) => {
    const { client, child, endpoint, name } = await connect(t, world)
    const calls = Array.from({ length: 200 }, () => client.hang().catch(error => error))
    const stream = client.count(1e9)
    await stream.next()
    await child.kill()
    for (const error of await withWatchdog('all calls', Promise.all(calls))) {
      if (error.code !== 'ERR_RPC_UNAVAILABLE' || error.reason !== 'PEER_DEAD') t.fail(error)
    }
    const rest = (async () => {
      for await (const _ of stream);
    })()
    await t.rejects(withWatchdog('the stream', rest), { code: 'ERR_RPC_UNAVAILABLE', reason: 'PEER_DEAD' })
    await t.rejects(client.echo(1), { code: 'ERR_RPC_UNAVAILABLE' }, `${name} is gone`)
    await endpoint.close()
    await t.rejects(client.echo(1), { code: 'ERR_RPC_UNAVAILABLE' }, 'of a closed endpoint')
  },
)

testOver(
  RELIABLE_PROCESS_DRIVER_LISTS,
  'closing the peer, or a peer without the service, is said',
  async (t, world) => {
    const { client, child, endpoint, name } = await connect(t, world)
    const call = client.hang().catch(error => error)
    const unknown = defineService({ print: method() }, { name: 'unknown' })
    await t.rejects(connectService(endpoint, name, unknown), { code: 'ERR_RPC_UNIMPLEMENTED' })
    const changed = defineService({
      echo: method<number, number>({ input: { ...printer.codec, name: 'other' } }),
    })
    const mixed = await connectService(endpoint, name, changed)
    await t.rejects(
      mixed.echo(1),
      { code: 'ERR_RPC_UNIMPLEMENTED', message: /echo method v8 v8/ },
      'another codec',
    )
    child.send({})
    t.match(await withWatchdog('the call', call), { code: 'ERR_RPC_UNAVAILABLE', reason: 'PEER_CLOSED' })
    const silent = await world.open()
    await t.rejects(
      connectService(endpoint, silent.name, printer),
      { code: 'ERR_RPC_UNIMPLEMENTED' },
      'it serves nothing',
    )
  },
)
