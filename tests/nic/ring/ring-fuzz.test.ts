/** A peer that writes anything, at any time, into the memory that we share with it. */
import t from 'tap'
import { BROKEN, CLOSED, NO_RESOURCE } from '../../../nic/index.ts'
import { HEAD_WORD, RING_SIZE_MIN, stampOf } from '../../../nic/ring/ring-layout.ts'
import { seededRandom } from '../../support/random.ts'
import { RingMemory } from '../../support/ring-memory.ts'
import { FRAME_MAX, ringInUse, SuspiciousSink, scribble } from '../../support/ring-scribbles.ts'

const SIZE = RING_SIZE_MIN
const ROUNDS = 20_000

t.test('a consumer survives scribbles: it never throws, runs on, or reads outside the ring', async t => {
  const random = seededRandom(t)
  const outcomes = { fine: 0, broken: 0 }
  for (let round = 0; round < ROUNDS; round++) {
    const ring = ringInUse(random)
    const sink = new SuspiciousSink(ring, random)
    for (let i = 0; i < 10; i++) {
      scribble(ring, random)
      const limit = random.within(0, 100)
      sink.calls = 0
      const count = ring.consumer.poll(sink, limit)
      if (!(count >= 0 && count <= limit) && count !== BROKEN) sink.complaints.push(`poll returned ${count}`)
      if (sink.calls > limit) sink.complaints.push(`${sink.calls} calls with a limit of ${limit}`)
      if (count === BROKEN && !ring.consumer.violation) sink.complaints.push('broken without a reason')
      ring.consumer.arm()
      ring.consumer.disarm()
    }
    if (ring.consumer.violation === undefined) outcomes.fine++
    else outcomes.broken++
    if (sink.complaints.length > 0) t.fail(`round ${round}: ${sink.complaints.join(', ')}`)
  }
  t.ok(outcomes.broken > 0 && outcomes.fine > 0, `${outcomes.broken} broken, ${outcomes.fine} went unnoticed`)
})

t.test('a producer survives scribbles: it never throws, runs on, or writes outside the ring', async t => {
  const random = seededRandom(t)
  const outcomes = { fine: 0, broken: 0 }
  for (let round = 0; round < ROUNDS; round++) {
    const ring = ringInUse(random)
    const complaints: string[] = []
    for (let i = 0; i < 20; i++) {
      scribble(ring, random)
      const length = random.within(0, FRAME_MAX)
      ring.producer.hasRoom(length)
      const at = ring.producer.reserve(length)
      if (at >= 0 && (at % 8 !== 0 || at < 8 || at + length > SIZE)) complaints.push(`reserved at ${at}`)
      if (at < 0 && at !== NO_RESOURCE && at !== BROKEN) complaints.push(`reserve returned ${at}`)
      if (at >= 0) ring.producer.commit(length)
      ring.producer.armForRoom(length)
      ring.producer.disarm()
    }
    if (ring.producer.violation === undefined) outcomes.fine++
    else outcomes.broken++
    if (complaints.length > 0) t.fail(`round ${round}: ${complaints.join(', ')}`)
  }
  t.ok(outcomes.broken > 0 && outcomes.fine > 0, `${outcomes.broken} broken, ${outcomes.fine} went unnoticed`)
})

t.test('both halves keep their promises when everything is noise', async t => {
  const random = seededRandom(t)
  for (let round = 0; round < 200; round++) {
    const ring = new RingMemory()
    for (let at = 0; at < ring.words.length; at++) ring.words[at] = random.word()
    ring.words[1] = stampOf(0)
    ring.control[HEAD_WORD] = random.word() & ~7
    const sink = new SuspiciousSink(ring, random)
    const count = ring.consumer.poll(sink, 1000)
    if (sink.complaints.length > 0 || (count < 0 && count !== BROKEN)) t.fail(sink.complaints.join(', '))
    while (ring.send(random.within(0, FRAME_MAX))) {}
    t.not(ring.producer.reserve(1), CLOSED)
  }
})
