/** A peer that sends anything: it may lose its connection, but it cannot throw, grow or stop anything here. */
import t, { type Test } from 'tap'
import { ReliableInterface } from '../../../am/index.ts'
import {
  HEADER_SIZE,
  KIND_ACK,
  KIND_DATA,
  KIND_PART,
  WINDOW_FRAMES,
} from '../../../am/reliability/reliability-layout.ts'
import { type FrameSink, openLoopbackPair } from '../../../nic/index.ts'
import { Collector, drain, patterned, sendFrame } from '../../support/frames.ts'
import { collectGarbage } from '../../support/garbage.ts'
import { type Random, seededRandom } from '../../support/random.ts'
import { encodeFrame, Stage, seal } from '../../support/reliability.ts'

const ROUNDS = 50_000
/** An object for each round, kept, would cost more. */
const GROWTH_MAX = 40 * ROUNDS
const CONTENT_MAX = 300

/** Complains about anything that lies outside the memory that it is given. */
class SuspiciousSink implements FrameSink {
  readonly complaints: string[] = []
  calls = 0
  readonly #frameMax: number

  constructor(end: ReliableInterface) {
    this.#frameMax = end.capabilities.frameMax
  }

  handleFrame(bytes: Uint8Array, offset: number, length: number): void {
    this.calls++
    if (offset % 8 !== 0 || length < 0 || length > this.#frameMax || offset + length > bytes.length) {
      this.complaints.push(`${length} bytes at ${offset}`)
    }
  }
}

/** A frame whose words are random, or just beside what is expected, and whose checksum is right. */
function forgeFrame(random: Random, around: number): Buffer {
  const bytes = random.bytes(HEADER_SIZE + random.within(0, CONTENT_MAX))
  for (let word = 1; word < HEADER_SIZE / 4; word++) {
    const near =
      around + random.pick([-WINDOW_FRAMES, -64, -1, 0, 1, 3, 64, WINDOW_FRAMES - 1, WINDOW_FRAMES])
    const value = random.pick([near, near, random.within(0, 2), random.word(), 0x7fffffff, 0x80000000, -1])
    bytes.writeInt32LE(value | 0, 4 * word)
  }
  return seal(bytes)
}

async function usedMemory(): Promise<number> {
  await collectGarbage()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** Lets `makeFrame` talk to an end that goes on sending, and checks that it stays as it must be. */
async function withstand(
  t: Test,
  makeFrame: (random: Random, end: ReliableInterface) => Buffer,
): Promise<Stage> {
  const random = seededRandom(t)
  const peer = new Stage(t)
  const { end } = peer
  const sink = new SuspiciousSink(end)
  const talk = (): void => {
    for (let round = 0; round < ROUNDS; round++) {
      peer.sayBytes(makeFrame(random, end))
      if (random.chance(0.3)) sendFrame(end, patterned(random.within(0, 100), round))
      if (random.chance(0.1)) end.arm(random.within(0, 1000))
      const limit = random.within(0, 10)
      const count = end.poll(sink, limit)
      if (count < 0 || count > limit) t.fail(`poll returned ${count} with a limit of ${limit}`)
      if (end.unacknowledged > WINDOW_FRAMES) t.fail(`${end.unacknowledged} frames under way`)
      if (random.chance(0.1)) peer.sent()
    }
  }
  talk()
  const before = await usedMemory()
  talk()
  const growth = (await usedMemory()) - before
  t.ok(growth < GROWTH_MAX, `${growth} bytes more than before`)
  t.strictSame(sink.complaints, [])
  t.ok(sink.calls <= end.stats.delivered, 'several parts may make one frame')
  t.equal(end.state, 'open')
  t.comment(JSON.stringify(end.stats))
  return peer
}

t.test('noise: all of it is dropped', async t => {
  const { end } = await withstand(t, random => random.bytes(random.within(0, CONTENT_MAX)))
  t.match(end.stats, { delivered: 0, duplicates: 0, early: 0, refused: 0, damaged: 2 * ROUNDS })
})

t.test('forged frames: sealed, with words that are likely to hurt', async t => {
  const { end } = await withstand(t, (random, end) => forgeFrame(random, end.stats.delivered))
  t.ok(end.stats.refused > 1000)
  t.ok(end.stats.delivered > 10 && end.stats.early > 10 && end.stats.duplicates > 10)
})

t.test('acknowledgements of what was never sent are refused, with all that comes along', async t => {
  const peer = new Stage(t)
  const { end } = peer
  for (let i = 0; i < 10; i++) sendFrame(end, patterned(8, i))
  const absurd = [
    { ack: 11 },
    { ack: 0x7fffffff },
    { echo: 10 },
    { echo: 0x7ffffff0 },
    { kind: 4 },
    { kind: 31, sequence: 0 },
  ]
  for (const frame of absurd) peer.say({ kind: KIND_DATA, content: Buffer.from('x'), ...frame })
  t.strictSame(drain(end), [])
  t.equal(end.stats.refused, absurd.length)
  t.equal(end.unacknowledged, 10)
  // As if it had been overtaken: it says nothing new, but what it carries is right.
  peer.say({ kind: KIND_DATA, ack: -1, echo: -5, sequence: 0, content: Buffer.from('y') })
  t.strictSame(drain(end), [Buffer.from('y')])
  t.equal(end.unacknowledged, 10)
})

t.test('claims of what has arrived reach no frame outside the window', async t => {
  const peer = new Stage(t)
  const { end } = peer
  for (let i = 0; i < 10; i++) sendFrame(end, patterned(8, i))
  for (const sackAt of [-64, 64, 0x7fffffc0, WINDOW_FRAMES]) {
    peer.say({ kind: KIND_ACK, echo: 9, sackAt, sacked: Array.from({ length: 64 }, (_, i) => i) })
  }
  drain(end)
  t.equal(end.outstanding, 10)
  peer.say({ kind: KIND_ACK, echo: 9, sacked: Array.from({ length: 64 }, (_, i) => i) })
  drain(end)
  t.equal(end.outstanding, 0)
  t.strictSame([sendFrame(end, patterned(8, 10)), end.outstanding], [0, 1], 'a new frame is not yet there')
})

t.test('frames beyond the window are refused', async t => {
  const peer = new Stage(t)
  const { end } = peer
  for (const sequence of [WINDOW_FRAMES, WINDOW_FRAMES + 1, 0x7fffffff]) peer.say({ sequence })
  t.strictSame(drain(end), [])
  t.equal(end.stats.refused, 3)
  peer.say({ sequence: WINDOW_FRAMES - 1 })
  t.strictSame(drain(end), [])
  t.equal(end.stats.early, 1)
})

t.test('a peer that sends more too early than there is memory for hears nothing of the rest', async t => {
  const peer = new Stage(t, { retentionBytes: 1 << 16 })
  const { end } = peer
  const content = Buffer.alloc(16_000)
  for (let sequence = 1; sequence < WINDOW_FRAMES; sequence++) {
    peer.say({ sequence, content })
    drain(end)
  }
  const { early } = end.stats
  t.ok(early >= 4 && early < 30, `${early} are kept`)
  peer.sent()
  peer.say({ sequence: 0, content })
  t.equal(drain(end).length, 1 + early)
  // What was not kept comes again.
  for (let sequence = early + 1; sequence < 100; sequence++) {
    peer.say({ sequence, content })
    t.equal(drain(end).length, 1)
  }
})

t.test('a flood of frames that deserve an answer gets one for each poll', async t => {
  const peer = new Stage(t)
  const { end } = peer
  peer.say({ sequence: 0 })
  t.equal(drain(end).length, 1)
  for (let i = 0; i < 60; i++) peer.say({ sequence: 0 })
  t.equal(end.poll(new Collector(), 64), 0)
  t.equal(peer.sent().length, 1)
})

t.test('a frame longer than the other side may send is dropped', async t => {
  const [near, far] = openLoopbackPair()
  const end = new ReliableInterface(near, { retentionBytes: 1 << 16 })
  const { frameMax } = end.capabilities
  sendFrame(far, encodeFrame({ content: Buffer.alloc(frameMax + 1) }))
  t.strictSame(drain(end), [])
  t.equal(end.stats.damaged, 1)
  sendFrame(far, encodeFrame({ content: Buffer.alloc(frameMax) }))
  t.strictSame(drain(end), [Buffer.alloc(frameMax)])
})

t.test('parts that make a frame longer than the longest are dropped, and the next frame arrives', async t => {
  const peer = new Stage(t, { retentionBytes: 1 << 16 })
  const { end } = peer
  const content = Buffer.alloc(8192, 1)
  const count = Math.floor(end.capabilities.frameMax / content.length) + 1
  for (let sequence = 0; sequence < count; sequence++) peer.say({ kind: KIND_PART, sequence, content })
  peer.say({ sequence: count, content: Buffer.from('next') })
  t.strictSame(drain(end), [Buffer.from('next')])
  t.equal(end.stats.refused, 1)
  for (const length of [0, 1, 12])
    peer.say({ kind: KIND_PART, sequence: count + 1, content: Buffer.alloc(length) })
  t.strictSame(drain(end), [])
  t.equal(end.stats.refused, 4, 'only whole words go on')
  for (const sequence of [count + 2, count + 1])
    peer.say({
      kind: sequence === count + 1 ? KIND_PART : KIND_DATA,
      sequence,
      content: Buffer.from('12345678'),
    })
  t.strictSame(drain(end), [Buffer.from('1234567812345678')], 'parts in any order make one frame')
})
