/** What a channel keeps its streams in, by itself: order, ids, and what a wrong id finds. */
import t from 'tap'
import type { Stream } from '../../../fastsockets/stream/stream.ts'
import { STREAMS_MAX } from '../../../fastsockets/stream/stream-layout.ts'
import { StreamQueue } from '../../../fastsockets/stream/stream-queue.ts'
import { StreamTable } from '../../../fastsockets/stream/stream-table.ts'
import { UnreadShare } from '../../../fastsockets/stream/unread-budget.ts'

/** Of a stream, what these two look at. */
function streamOf(id: number): Stream {
  return { id, queues: 0, window: 0 } as Stream
}

t.test('a queue has each stream once, in the order of arrival, wherever streams leave it', async t => {
  const queue = new StreamQueue(2)
  const streams = Array.from({ length: 1000 }, (_, i) => streamOf(i))
  for (const stream of [...streams, ...streams]) queue.add(stream)
  t.equal(queue.size, 1000)
  const isLeft = (id: number): boolean => id >= 400 && id % 3 !== 0
  for (const stream of streams.slice(0, 400)) {
    t.equal(queue.first, stream)
    queue.delete(stream)
    queue.delete(stream)
  }
  for (const stream of streams) if (!isLeft(stream.id)) queue.delete(stream)
  const back = streams[0] as Stream
  queue.add(back)
  t.strictSame([...queue.snapshot()], [...streams.filter(({ id }) => isLeft(id)), back])
  t.ok(queue.has(back))
  queue.clear()
  t.equal(queue.size, 0)
  t.equal(queue.first, undefined)
  t.ok(
    streams.every(({ queues }) => queues === 0),
    'no mark is left',
  )
})

t.test('a table gives no id twice while it can be meant, and knows no id that it has not given', async t => {
  const table = new StreamTable({ unread: new UnreadShare() })
  const first = streamOf(table.allocateId())
  table.put(first)
  t.ok(first.id > 0)
  t.equal(table.get(first.id), first)
  table.delete(first)
  table.delete(first)
  const second = streamOf(table.allocateId())
  t.not(second.id, first.id)
  t.equal(table.get(second.id), undefined, 'allocated, and no stream is there yet')
  table.put(second)
  t.equal(table.get(first.id), undefined)
  for (const id of [0, -1, -second.id, second.id + STREAMS_MAX, second.id + 1, 0x7fffffff, -0x80000000])
    t.equal(table.get(id), undefined, `${id}`)
  t.strictSame(table.all(), [second])
})

t.test('a table has room for STREAMS_MAX, and ids stay positive when they begin again', async t => {
  const table = new StreamTable({ unread: new UnreadShare() })
  const streams = Array.from({ length: STREAMS_MAX }, () => {
    const stream = streamOf(table.allocateId())
    table.put(stream)
    return stream
  })
  t.equal(new Set(streams.map(({ id }) => id)).size, STREAMS_MAX)
  t.ok(table.isFull)
  table.delete(streams[7] as Stream)
  t.notOk(table.isFull)
  let least = Number.POSITIVE_INFINITY
  let most = 0
  for (let i = 0; i < 70_000; i++) {
    const stream = streamOf(table.allocateId())
    least = Math.min(least, stream.id)
    most = Math.max(most, stream.id)
    table.put(stream)
    table.delete(stream)
  }
  t.ok(least > 0 && most <= 0x7fffffff)
})

t.test("a table keeps the peer's numbers apart from its own, and knows which it has refused", async t => {
  const table = new StreamTable({ unread: new UnreadShare() })
  const own = streamOf(table.allocateId())
  table.put(own)
  const theirs = streamOf(-own.id)
  t.equal(table.get(theirs.id), undefined)
  table.put(theirs)
  t.equal(table.get(own.id), own)
  t.equal(table.get(theirs.id), theirs)
  for (const id of [-0x80000000, -0x7fffffff, theirs.id - STREAMS_MAX])
    t.equal(table.get(id), undefined, `${id}`)
  t.strictSame(table.all(), [own, theirs])
  table.delete(theirs)
  t.strictSame(table.all(), [own])
  t.notOk(table.wasRefused(theirs.id))
  table.noteRefused(theirs.id)
  t.ok(table.wasRefused(theirs.id))
  for (const id of [own.id, theirs.id - STREAMS_MAX, -0x80000000]) t.notOk(table.wasRefused(id), `${id}`)
})
