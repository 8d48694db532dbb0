/** A peer that writes anything, at any time, into the memory that we share with it. */
import t from 'tap'
import { BROKEN, CLOSED, type FrameSink, NO_RESOURCE } from '../../nic/index.ts'
import { HEAD_WORD, RING_SIZE_MIN, SKIP, stampOf } from '../../nic/ring/ring-layout.ts'
import { type Random, seededRandom } from '../support/random.ts'
import { RingMemory } from '../support/ring-memory.ts'

const SIZE = RING_SIZE_MIN
const FRAME_MAX = SIZE / 8
const ROUNDS = 20_000

/** Checks where frames lie, and scribbles on while it is being called. */
class SuspiciousSink implements FrameSink {
  readonly complaints: string[] = []
  calls = 0
  readonly #ring: RingMemory
  readonly #random: Random

  constructor(ring: RingMemory, random: Random) {
    this.#ring = ring
    this.#random = random
  }

  handleFrame(bytes: Uint8Array, offset: number, length: number): void {
    this.calls++
    if (
      offset % 8 !== 0 ||
      offset < 8 ||
      length < 0 ||
      length > FRAME_MAX ||
      offset + length > bytes.length
    ) {
      this.complaints.push(`a frame of ${length} bytes at ${offset}`)
    }
    if (this.#random.chance(0.2)) scribble(this.#ring, this.#random)
  }
}

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

/** A ring somewhere in its life, with frames in it. */
function ringInUse(random: Random): RingMemory {
  const ring = new RingMemory()
  const sink: FrameSink = { handleFrame: () => {} }
  for (let i = random.within(0, 100); i > 0; i--) {
    ring.send(random.within(0, random.chance(0.2) ? FRAME_MAX : 200))
    if (random.chance(0.5)) ring.consumer.poll(sink, 2)
  }
  return ring
}

/** One word of the ring becomes something that is likely to hurt. */
function scribble(ring: RingMemory, random: Random): void {
  const head = ring.control[HEAD_WORD] as number
  const near = 8 * random.within(-20, 20)
  const values = [
    head + near,
    stampOf(head + near),
    stampOf(head + SIZE + near),
    random.word(),
    random.word() & ~7,
    0,
    1,
    SKIP,
    -2,
    FRAME_MAX + random.within(-1, 1),
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fff8,
  ] as const
  const value = values[random.within(0, values.length - 1)] as number
  const frameAt = ((head + 8 * random.within(0, 4)) & (SIZE - 1)) >> 2
  const place = random.within(1, 5)
  if (place === 1) ring.control[HEAD_WORD] = value
  else if (place === 2) ring.words[frameAt] = value
  else if (place === 3) ring.words[frameAt + 1] = value
  else if (place === 4) ring.words[random.within(0, ring.words.length - 1)] = value
  else ring.control[random.within(0, ring.control.length - 1)] = value
}
