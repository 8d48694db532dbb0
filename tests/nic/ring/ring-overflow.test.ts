/** Bursts go to the overflow ring, in order, and the producer comes back once the consumer has caught up. */
import t from 'tap'
import { BROKEN, NO_RESOURCE } from '../../../nic/index.ts'
import { RingConsumer } from '../../../nic/ring/ring-consumer.ts'
import {
  CONTROL_SIZE,
  FRAME_STAMP,
  HEAD_WORD,
  OVERFLOW_HEAD_WORD,
  overflowSizeOf,
  RING_SIZE_MIN,
  ringBytes,
  SWITCH,
  stampOf,
} from '../../../nic/ring/ring-layout.ts'
import { RingProducer } from '../../../nic/ring/ring-producer.ts'
import { seededRandom } from '../../support/random.ts'

const SIZE = RING_SIZE_MIN
const FRAME_MAX = SIZE / 8

/** Both halves of a ring with an overflow ring; each frame carries its number in every word. */
class Rings {
  readonly memory = new ArrayBuffer(ringBytes(SIZE))
  readonly overflow = new ArrayBuffer(overflowSizeOf(SIZE))
  readonly producer = new RingProducer(this.memory, 0, SIZE)
  readonly consumer = new RingConsumer(this.memory, 0, SIZE, () => ({ memory: this.overflow, offset: 0 }))
  readonly control = new Int32Array(this.memory, 0, CONTROL_SIZE / 4)
  sent = 0
  received = 0
  wrong = 0

  constructor() {
    this.producer.useOverflow(() => ({ memory: this.overflow, offset: 0 }))
  }

  send(length: number): boolean {
    const at = this.producer.reserve(length)
    if (at < 0) return false
    this.producer.words.fill(this.sent++, at >> 2, (at + length) >> 2)
    this.producer.commit(length)
    return true
  }

  poll(limit: number): number {
    const { consumer } = this
    return consumer.poll(
      {
        handleFrame: (_bytes, offset, length) => {
          const number = this.received++
          for (const word of consumer.words.subarray(offset >> 2, (offset + length) >> 2))
            if (word !== number) this.wrong++
        },
      },
      limit,
    )
  }
}

t.test(
  'a burst of sixteen rings is taken, arrives in order, and leaves the producer in its first ring',
  t => {
    const rings = new Rings()
    for (let lap = 0; lap < 3; lap++) {
      let bytes = 0
      while (rings.send(1000)) bytes += 1000
      t.ok(bytes > 16 * SIZE * 0.95, `${bytes} bytes`)
      t.ok(rings.producer.isInOverflow)
      while (rings.poll(64) > 0);
      t.equal(rings.received, rings.sent)
      t.ok(rings.send(8))
      t.notOk(rings.producer.isInOverflow)
      rings.poll(64)
    }
    t.equal(rings.received, rings.sent)
    t.equal(rings.wrong, 0)
    t.end()
  },
)

t.test('frames of any length, taken at any time', t => {
  const random = seededRandom(t)
  const rings = new Rings()
  let overflows = 0
  for (let round = 0; round < 30_000; round++) {
    const wasInOverflow = rings.producer.isInOverflow
    for (let i = random.within(0, 20); i > 0; i--) rings.send(4 * random.within(0, FRAME_MAX / 4))
    if (!wasInOverflow && rings.producer.isInOverflow) overflows++
    const limit = random.within(0, 40)
    if (limit > 0 && rings.poll(limit) < 0) throw new Error(rings.consumer.violation)
  }
  while (rings.poll(64) > 0);
  t.equal(rings.received, rings.sent)
  t.equal(rings.wrong, 0)
  t.ok(overflows > 10, `${overflows} times`)
  t.end()
})

t.test('without a permission nothing goes there', t => {
  const memory = new ArrayBuffer(ringBytes(SIZE))
  const producer = new RingProducer(memory, 0, SIZE)
  let at = 0
  while (at >= 0) {
    at = producer.reserve(1000)
    if (at >= 0) producer.commit(1000)
  }
  t.equal(at, NO_RESOURCE)
  t.notOk(producer.isInOverflow)
  t.end()
})

t.test('a producer that switches to a ring that is not there breaks the protocol', t => {
  const memory = new ArrayBuffer(ringBytes(SIZE))
  const consumer = new RingConsumer(memory, 0, SIZE)
  const words = new Int32Array(memory, CONTROL_SIZE)
  words[0] = SWITCH
  words[FRAME_STAMP >> 2] = stampOf(0)
  t.equal(consumer.poll({ handleFrame() {} }, 10), BROKEN)
  t.match(consumer.violation, 'overflow')
  t.end()
})

t.test('a producer that only switches rings does not stall its consumer', t => {
  const rings = new Rings()
  const first = new Int32Array(rings.memory, CONTROL_SIZE)
  const second = new Int32Array(rings.overflow)
  for (let at = 0; at < SIZE; at += 8) {
    first[at >> 2] = SWITCH
    first[(at + FRAME_STAMP) >> 2] = stampOf(at)
  }
  second[0] = SWITCH
  second[FRAME_STAMP >> 2] = stampOf(0)
  t.equal(rings.poll(1), 1)
  t.equal(rings.poll(1), 1)
  t.equal(rings.received, 0)
  t.end()
})

t.test('a consumer stops following the switches of a producer that is gone', t => {
  const rings = new Rings()
  const places = [
    { words: new Int32Array(rings.memory, CONTROL_SIZE), size: SIZE },
    { words: new Int32Array(rings.overflow), size: overflowSizeOf(SIZE) },
  ]
  const most = (SIZE + overflowSizeOf(SIZE)) / 8
  rings.consumer.expectEnd()
  let taken = 0
  for (let at = 0; taken <= most; at += 8) {
    for (const { words, size } of places) {
      const place = (at & (size - 1)) >> 2
      words[place] = SWITCH
      words[place + FRAME_STAMP / 4] = stampOf(at)
    }
    const count = rings.poll(2)
    if (count <= 0) break
    taken += count
  }
  t.equal(taken, most)
  t.equal(rings.consumer.frameWord, -1)
  t.equal(rings.consumer.violation, undefined)
  t.end()
})

t.test('a consumer that lies about the overflow breaks the protocol', t => {
  const rings = new Rings()
  while (!rings.producer.isInOverflow) rings.send(1000)
  Atomics.store(rings.control, OVERFLOW_HEAD_WORD, 1 << 20)
  t.equal(rings.producer.reserve(8), BROKEN)
  t.match(rings.producer.violation, 'head moved')

  const others = new Rings()
  while (!others.producer.isInOverflow) others.send(1000)
  while (others.poll(64) > 0);
  Atomics.store(others.control, HEAD_WORD, 1 << 20)
  t.equal(others.producer.reserve(8), BROKEN)
  t.end()
})
