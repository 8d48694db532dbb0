import t from 'tap'
import { AckQueue } from '../../am/ack-queue.ts'
import { AnswerQueue } from '../../am/answer-queue.ts'
import { FrameWriter } from '../../am/frame-writer.ts'
import { encodeRun, headerSize, KIND_BOUNCE, KIND_REPLY, KIND_RETURN } from '../../am/message-layout.ts'
import { NO_WORDS, Words } from '../../am/words.ts'
import { openLoopbackPair, type VirtualInterface } from '../../nic/index.ts'
import { RING_SIZE_MIN } from '../../nic/ring/ring-layout.ts'
import { fill, patterned } from '../support/frames.ts'
import { drainMessages, type WireMessage } from '../support/messages.ts'

const ANSWER = 20
const FILLER = 1000

interface Setup {
  readonly near: VirtualInterface
  readonly far: VirtualInterface
  readonly acks: AckQueue
  readonly answers: AnswerQueue
}

/** An answer queue with four requests of the peer under way. */
function setUp(): Setup {
  const [near, far] = openLoopbackPair(RING_SIZE_MIN)
  const acks = new AckQueue(4)
  for (let slot = 0; slot < 4; slot++) acks.begin(slot)
  return { near, far, acks, answers: new AnswerQueue(new FrameWriter(near, acks), acks) }
}

function wordsOf(...list: number[]): Words {
  const words = new Words()
  words.setArray(list)
  return words
}

/** What has arrived at the peer, without what had filled the way there. */
function arrivals(far: VirtualInterface): WireMessage[] {
  return drainMessages(far).filter(({ kind, handler }) => kind !== 0 || handler !== 0)
}

/** Leaves room for nothing. */
function block(end: VirtualInterface): void {
  fill(end, FILLER)
  fill(end, 8)
}

t.test('an answer goes at once if there is room, and frees the slot of its request', async t => {
  const { far, acks, answers } = setUp()
  t.equal(answers.send(KIND_REPLY, 2, ANSWER, wordsOf(7, -8), patterned(200, 1)), true)
  t.equal(answers.queued.length, 0)
  t.match(drainMessages(far), [{ kind: KIND_REPLY, slot: 2, handler: ANSWER, acks: 0, words: [7, -8] }])
  t.equal(acks.begin(2), true)
  t.equal(acks.begin(1), false)
})

t.test('acknowledgements ride on an answer', async t => {
  const { far, acks, answers } = setUp()
  acks.add(0)
  acks.add(1)
  answers.send(KIND_RETURN, 2, 5, NO_WORDS, undefined)
  t.match(drainMessages(far), [{ kind: KIND_RETURN, slot: 2, handler: 5, acks: encodeRun(0, 2), words: [] }])
})

t.test('what finds no room waits in order, in copies, and holds its slot back', async t => {
  const { near, far, acks, answers } = setUp()
  block(near)
  const words = new Words()
  const payload = Buffer.alloc(100)
  for (let slot = 0; slot < 4; slot++) {
    words.setArray([slot])
    payload.fill(slot)
    t.equal(answers.send(KIND_REPLY, slot, ANSWER, words, slot === 2 ? undefined : payload), false)
    t.equal(acks.begin(slot), false, 'the slot is not free yet')
  }
  payload.fill(99)
  t.ok(answers.queued.length > 0)
  t.equal(answers.flush(), false, 'there is still no room')
  t.strictSame(arrivals(far), [])
  t.equal(answers.flush(), true)
  t.equal(answers.queued.length, 0)
  const sent = arrivals(far)
  t.strictSame(
    sent.map(({ slot, words }) => [slot, words]),
    [0, 1, 2, 3].map(slot => [slot, [slot]]),
  )
  sent.forEach(({ payload }, slot) => {
    t.ok(payload.equals(slot === 2 ? Buffer.alloc(0) : Buffer.alloc(100, slot)), `payload of ${slot}`)
  })
  for (let slot = 0; slot < 4; slot++) t.equal(acks.begin(slot), true)
})

t.test('a short answer does not overtake a long one that waits', async t => {
  const { near, far, answers } = setUp()
  while (near.hasRoom(4000 + headerSize(0, 0))) fillOnce(near)
  t.equal(answers.send(KIND_REPLY, 0, ANSWER, NO_WORDS, Buffer.alloc(4000)), false)
  t.equal(near.hasRoom(headerSize(0, 0)), true, 'there would be room')
  t.equal(answers.send(KIND_REPLY, 1, ANSWER, NO_WORDS, undefined), false)
  arrivals(far)
  t.equal(answers.flush(), true)
  t.strictSame(
    arrivals(far).map(({ slot }) => slot),
    [0, 1],
  )
})

t.test('a flush sends what there is room for, and goes on later', async t => {
  const { near, far, answers } = setUp()
  block(near)
  for (let slot = 0; slot < 4; slot++) answers.send(KIND_REPLY, slot, ANSWER, NO_WORDS, Buffer.alloc(8000))
  far.poll({ handleFrame: () => {} }, 12)
  t.equal(answers.flush(), false)
  t.ok(answers.queued.length > 0)
  const first = arrivals(far).length
  t.ok(first > 0 && first < 4, `${first} of 4 went`)
  t.equal(answers.flush(), true)
  t.equal(arrivals(far).length, 4 - first)
})

t.test('the room wanted is that of the first that waits, and none if nothing does', async t => {
  const { near, far, answers } = setUp()
  t.equal(answers.roomWanted, 0)
  block(near)
  answers.send(KIND_REPLY, 0, ANSWER, wordsOf(1, 2, 3), Buffer.alloc(500))
  answers.send(KIND_REPLY, 1, ANSWER, NO_WORDS, undefined)
  t.equal(answers.roomWanted, headerSize(3, 0) + 500)
  arrivals(far)
  t.equal(near.hasRoom(answers.roomWanted), true)
  t.equal(answers.flush(), true)
  t.equal(answers.roomWanted, 0)
})

t.test('a bounce answers no request: the number in its slot is a reason', async t => {
  const { near, far, acks, answers } = setUp()
  answers.send(KIND_BOUNCE, 2, ANSWER, wordsOf(1), patterned(10, 3))
  t.equal(acks.begin(2), false, 'the request in slot 2 is still under way')
  block(near)
  answers.send(KIND_BOUNCE, 2, ANSWER, NO_WORDS, undefined)
  arrivals(far)
  t.equal(answers.flush(), true)
  t.equal(acks.begin(2), false)
  t.match(arrivals(far), [{ kind: KIND_BOUNCE, slot: 2, handler: ANSWER }])
})

t.test('over an interface that is closed everything waits, and nothing is thrown', async t => {
  const { near, answers } = setUp()
  near.close()
  t.equal(answers.send(KIND_REPLY, 0, ANSWER, NO_WORDS, Buffer.alloc(10)), false)
  t.equal(answers.flush(), false)
})

function fillOnce(end: VirtualInterface): void {
  end.reserve(FILLER)
  end.commit(FILLER)
}
