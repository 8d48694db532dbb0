/** Whose turn it is among the workers of a cluster, without any. */
import t from 'tap'
import { WorkerGroup } from '../../../fastsockets/connect/worker-group.ts'
import type { SocketChannel } from '../../../fastsockets/stream/socket-channel.ts'

const nobody = (): boolean => false

function channel(): SocketChannel {
  return { isUsable: true } as SocketChannel
}

/** A group that knows these workers, and takes them for all. */
function groupOf(channels: readonly SocketChannel[]): WorkerGroup {
  const group = new WorkerGroup()
  for (let round = 0; round < 3; round++) for (const channel of channels) group.meet({ channel, address: '' })
  group.makeDo()
  return group
}

t.test('all are known when a full round of calls has met no new one, and not before', async t => {
  const [one, two, three] = [channel(), channel(), channel()]
  const group = new WorkerGroup()
  const met = [one, two, one, three, two, one, three]
  const isComplete = met.map(channel => {
    group.meet({ channel, address: '' })
    return group.isComplete
  })
  t.same(isComplete, [false, false, false, false, false, false, true])
})

t.test('connections that wait for one call: the first of them has its worker', async t => {
  const group = new WorkerGroup()
  const meeting = { channel: channel(), address: '' }
  t.equal(group.meet(meeting), true)
  t.equal(group.meet(meeting), false)
})

t.test('who has the fewest connections is next, but for those who owe an answer', async t => {
  const [one, two] = [channel(), channel()]
  const group = groupOf([one, two])
  const answerOfOne = group.noteAsked(one)
  t.equal(group.next(nobody)?.channel, two)
  group.noteAsked(two)()
  group.noteAsked(two)()
  t.equal(group.next(nobody)?.channel, two, 'one is busy')
  answerOfOne()
  t.equal(group.next(nobody)?.channel, one)
  answerOfOne()
  t.equal(group.next(nobody)?.channel, one, 'an answer counts once')
})

t.test('when all are busy they take turns', async t => {
  const [one, two] = [channel(), channel()]
  const group = groupOf([one, two])
  const turns = [1, 2, 3, 4].map(() => {
    const next = group.next(nobody)?.channel as SocketChannel
    group.noteAsked(next)
    return next
  })
  t.same(turns, [one, two, one, two])
})

t.test('who refuses is passed over; who has gone, or listens no more, is looked for anew', async t => {
  const [one, two] = [channel(), channel()]
  const group = groupOf([one, two])
  t.equal(group.next(channel => channel === one)?.channel, two)
  t.equal(group.isComplete, true)
  Object.assign(one, { isUsable: false })
  t.equal(group.isComplete, false)
  t.equal(group.next(nobody)?.channel, two)
  group.leave(two)
  t.equal(group.next(nobody)?.channel, undefined)
  t.equal(group.isEmpty, true)
})

t.test('a worker that comes later does not get all that follows', async t => {
  const [one, two] = [channel(), channel()]
  const group = groupOf([one])
  for (let i = 0; i < 10; i++) group.noteAsked(one)()
  group.meet({ channel: two, address: '' })
  group.noteAsked(two)()
  t.equal(group.next(nobody)?.channel, one)
})

t.test('of a very large cluster some are kept', async t => {
  const group = new WorkerGroup()
  for (let i = 0; i < 100; i++) group.meet({ channel: channel(), address: '' })
  t.equal(group.isComplete, true)
  const kept = new Set<unknown>()
  for (let i = 0; i < 100; i++) {
    const next = group.next(nobody)?.channel as SocketChannel
    group.noteAsked(next)
    kept.add(next)
  }
  t.equal(kept.size, 64)
})
