import t from 'tap'
import { BROKEN, CLOSED, NO_RESOURCE } from '../../../nic/index.ts'
import {
  ARMED_WORD,
  FRAME_LENGTH,
  FRAME_STAMP,
  HEAD_WORD,
  NO_FRAME,
  RING_SIZE_MAX,
  RING_SIZE_MIN,
  ROOM_WANTED_WORD,
  SKIP,
  stampOf,
} from '../../../nic/ring/ring-layout.ts'
import { Collector, Handler } from '../../support/frames.ts'
import { seededRandom } from '../../support/random.ts'
import { RingMemory } from '../../support/ring-memory.ts'

const SIZE = RING_SIZE_MIN
const FRAME_MAX = SIZE / 8

t.test('a consumer refuses a stamp that cannot be, names it, and stays broken', async t => {
  const impossible: [what: string, stamp: number][] = [
    ['of the frame before', stampOf(0)],
    ['of the next one', stampOf(32)],
    ['of the next lap', stampOf(16 + SIZE)],
    ['of no position at all', 16],
    ['half the number space away', stampOf(0x8000_0010 | 0)],
    ['minus one', -1],
  ]
  for (const [what, stamp] of impossible) {
    const ring = new RingMemory()
    ring.send(8)
    ring.consumer.poll(new Collector(), 1)
    const at = (16 + FRAME_STAMP) / 4
    ring.words[at] = stamp
    const collector = new Collector()
    t.equal(ring.consumer.poll(collector, 10), BROKEN, what)
    t.match(ring.consumer.violation, `frame at 16 is stamped ${stamp >>> 0}`)
    t.equal(collector.frames.length, 0)
    ring.words[at] = NO_FRAME
    t.equal(ring.consumer.poll(collector, 10), BROKEN, 'taking it back does not help')
    t.equal(ring.consumer.arm(), false)
  }
})

t.test('what lay there in the last lap is never taken for a frame', async t => {
  const ring = new RingMemory()
  // Every word of it looks like a header of the next lap.
  for (let lap = 0; lap < 3; lap++) {
    for (let at = 0; at < SIZE; at += 1024) {
      const content = ring.producer.reserve(1016)
      for (let i = 0; i < 1016; i += 4) {
        const place = content + i
        const position = (lap + 1) * SIZE + place
        ring.producer.words[place / 4] = place % 8 === 4 ? stampOf(position - 4) : 8
      }
      ring.producer.commit(1016)
      const collector = new Collector()
      t.equal(ring.consumer.poll(collector, 10), 1)
      t.equal(ring.consumer.poll(collector, 10), 0)
    }
  }
})

t.test('a consumer refuses a frame header that cannot be, and names it', async t => {
  const impossible: [what: string, word: number, value: number, violation: RegExp][] = [
    ['a stamp of another position', FRAME_STAMP, 8, /frame at 0 is stamped 8/],
    ['a stamp of all ones', FRAME_STAMP, -1, /frame at 0 is stamped 4294967295/],
    ['a negative length', FRAME_LENGTH, -3, /frame at 0 claims -3 bytes/],
    ['the most negative length', FRAME_LENGTH, -0x8000_0000, /claims -2147483648 bytes/],
    ['the largest length', FRAME_LENGTH, 0x7fff_ffff, /claims 2147483647 bytes/],
    ['a length beyond frameMax', FRAME_LENGTH, FRAME_MAX + 1, /claims 8193 bytes/],
    ['a skip over what has room for any frame', FRAME_LENGTH, SKIP, /skip at 0 passes over 65536 bytes/],
  ]
  for (const [what, at, value, violation] of impossible) {
    const ring = new RingMemory()
    ring.send(16)
    ring.words[at / 4] = value
    const collector = new Collector()
    t.equal(ring.consumer.poll(collector, 10), BROKEN, what)
    t.match(ring.consumer.violation, violation)
    t.equal(collector.frames.length, 0)
  }
})

t.test('a consumer refuses a frame that runs over the end of the ring', async t => {
  const ring = new RingMemory()
  // Seven frames of 8184 and their headers, one of 8160: 24 bytes are left before the end.
  for (let i = 0; i < 7; i++) ring.send(8184)
  ring.send(8160)
  ring.consumer.poll(new Collector(), 8)
  ring.send(8)
  ring.send(100)
  const at = (SIZE - 24) / 4
  t.equal(ring.words[at], 8)
  ring.words[at] = 24
  t.equal(ring.consumer.poll(new Collector(), 8), BROKEN)
  t.match(ring.consumer.violation, /frame at 65512 claims 24 bytes/)
})

t.test('frames before the violation are delivered, frames after it are not', async t => {
  const ring = new RingMemory()
  for (let i = 0; i < 5; i++) ring.send(8)
  ring.words[(3 * 16 + FRAME_STAMP) / 4] = 3
  const collector = new Collector()
  t.equal(ring.consumer.poll(collector, 10), BROKEN)
  t.equal(collector.frames.length, 3)
})

t.test('a producer refuses a head that cannot be, names it, and stays broken', async t => {
  const impossible: [what: string, move: (head: number) => number][] = [
    ['moved backwards', head => head - 8],
    ['moved backwards below zero', () => -8],
    ['beyond the tail', head => head + SIZE],
    ['half the number space away', head => (head + 0x8000_0000) | 0],
    ['not a multiple of 8', head => head + 4],
    ['odd', head => head + 1],
  ]
  for (const [what, move] of impossible) {
    const ring = new RingMemory()
    while (ring.send(1000)) {}
    ring.consumer.poll(new Collector(), 20)
    while (ring.send(1000)) {}
    const head = ring.control[HEAD_WORD] as number
    ring.control[HEAD_WORD] = move(head)
    t.equal(ring.producer.reserve(1000), BROKEN, what)
    t.match(ring.producer.violation, /^head moved from \d+ to \d+ with the tail at \d+$/)
    ring.control[HEAD_WORD] = head
    t.equal(ring.producer.reserve(1000), BROKEN, 'taking it back does not help')
    t.equal(ring.producer.hasRoom(8), false)
    t.equal(ring.producer.armForRoom(8), false)
  }
})

t.test('hasRoom finds an impossible head too', async t => {
  const ring = new RingMemory()
  while (ring.send(1000)) {}
  ring.control[HEAD_WORD] = 4
  t.equal(ring.producer.hasRoom(1000), false)
  t.match(ring.producer.violation, /^head moved/)
  t.equal(ring.producer.reserve(8), BROKEN)
})

t.test('a full ring is not quite full: there is always a place that says that no frame follows', async t => {
  const ring = new RingMemory()
  while (ring.send(0)) {}
  const collector = new Collector()
  t.equal(ring.consumer.poll(collector, SIZE), SIZE / 8 - 1)
  t.equal(ring.consumer.poll(collector, SIZE), 0)
  t.equal(ring.send(0), true)
  t.equal(ring.consumer.poll(collector, SIZE), 1)
})

t.test('a full ring refuses; what is released, a sixteenth of the ring at once, is room again', async t => {
  const ring = new RingMemory()
  let count = 0
  while (ring.send(1016)) count++
  t.equal(count, SIZE / 1024 - 1)
  t.equal(ring.producer.reserve(1016), NO_RESOURCE)
  const batch = SIZE / 1024 / 16
  t.equal(ring.consumer.poll(new Collector(), batch - 1), batch - 1)
  t.equal(ring.producer.reserve(1016), NO_RESOURCE)
  t.equal(ring.consumer.poll(new Collector(), 1), 1)
  for (let i = 0; i < batch; i++) t.equal(ring.send(1016), true)
  t.equal(ring.producer.reserve(1016), NO_RESOURCE)
})

t.test('what an empty ring has not released leaves room for any frame; arming releases it', async t => {
  const ring = new RingMemory()
  for (let i = 0; i < 500; i++) {
    ring.send(120)
    t.equal(ring.consumer.poll(new Collector(), 10), 1)
    t.equal(ring.producer.hasRoom(FRAME_MAX), true)
  }
  t.not(ring.control[HEAD_WORD], 500 * 128)
  t.equal(ring.consumer.arm(), true)
  t.equal(ring.control[HEAD_WORD], 500 * 128)
})

t.test('a frame that is being handled is not released by arming', async t => {
  const ring = new RingMemory()
  ring.send(8)
  const head = (): number => Atomics.load(ring.control, HEAD_WORD)
  ring.consumer.poll(
    new Handler(() => {
      t.equal(ring.consumer.arm(), false)
      t.equal(head(), 0)
    }),
    1,
  )
  t.equal(ring.consumer.arm(), true)
  t.equal(head(), 16)
})

t.test('a busy producer gets room back in the middle of a long poll', async t => {
  const ring = new RingMemory()
  while (ring.send(1016)) {}
  let sentMeanwhile = 0
  const sink = new Handler(() => {
    if (ring.send(1016)) sentMeanwhile++
  })
  ring.consumer.poll(sink, SIZE / 1024)
  t.ok(sentMeanwhile > 0)
})

t.test('commit asks for the doorbell once per arming, poll once per wish for room', async t => {
  const ring = new RingMemory()
  ring.producer.reserve(8)
  t.equal(ring.producer.commit(8), false)
  ring.consumer.poll(new Collector(), 1)
  t.equal(ring.consumer.arm(), true)
  t.equal(ring.control[ARMED_WORD], 1)
  ring.producer.reserve(8)
  t.equal(ring.producer.commit(8), true)
  ring.producer.reserve(8)
  t.equal(ring.producer.commit(8), false)

  while (ring.send(8)) {}
  t.equal(ring.producer.armForRoom(8), true)
  t.equal(ring.control[ROOM_WANTED_WORD], 1)
  ring.consumer.poll(new Collector(), 1)
  t.equal(ring.consumer.producerWaits, true)
  ring.consumer.producerWaits = false
  ring.consumer.poll(new Collector(), 1)
  t.equal(ring.consumer.producerWaits, false)
})

t.test('closed halves answer CLOSED and hold no memory', async t => {
  const ring = new RingMemory()
  ring.send(8)
  ring.producer.close()
  ring.consumer.close()
  t.equal(ring.producer.reserve(8), CLOSED)
  t.equal(ring.producer.hasRoom(8), false)
  t.equal(ring.consumer.poll(new Collector(), 1), CLOSED)
  t.equal(ring.producer.bytes.length + ring.consumer.bytes.length, 0)
})

t.test('positions wrap at 2^32 without a visible effect', async t => {
  const ring = new RingMemory()
  const { producer, consumer } = ring
  const random = seededRandom(t)
  let next = 0
  let wrong = 0
  const sink = {
    handleFrame(_bytes: Uint8Array, offset: number, length: number): void {
      if (consumer.words[offset >> 2] !== next) wrong++
      if (length !== FRAME_MAX - (next & 63)) wrong++
      next = (next + 1) | 0
    },
  }
  let sent = 0
  let before = 0
  let pollsAfterWrap = 0
  // Past 2^31, where the sign changes, past 2^32, where the position is 0 again, and on.
  while (pollsAfterWrap < 10_000) {
    for (let burst = random.within(1, 7); burst > 0; burst--) {
      const length = FRAME_MAX - (sent & 63)
      const at = producer.reserve(length)
      if (at < 0) break
      producer.words[at >> 2] = sent
      producer.commit(length)
      sent = (sent + 1) | 0
    }
    consumer.poll(sink, random.within(1, 7))
    const head = (ring.control[HEAD_WORD] as number) >>> 0
    if (head < before || pollsAfterWrap > 0) pollsAfterWrap++
    before = head
  }
  while (consumer.poll(sink, 64) > 0) {}
  t.equal(next, sent)
  t.equal(wrong, 0)
  t.equal(producer.violation, undefined)
  t.equal(consumer.violation, undefined)
})

t.test('the largest ring there may be keeps its positions apart', async t => {
  t.ok(RING_SIZE_MAX <= 2 ** 30, 'a signed difference of positions tells full from empty')
})
