import t from 'tap'
import { ReliableInterface, reliable } from '../../../am/index.ts'
import {
  HEADER_SIZE,
  KIND_ACK,
  KIND_DATA,
  WINDOW_FRAMES,
} from '../../../am/reliability/reliability-layout.ts'
import { RETENTION_BYTES_DEFAULT } from '../../../am/reliability/reliability-options.ts'
import { NO_RESOURCE, OK, openLoopbackPair, wrapWithFaults } from '../../../nic/index.ts'
import { Collector, drain, fill, Handler, sendFrame } from '../../support/frames.ts'
import { NumberedSink, sendNumbered } from '../../support/numbered-frames.ts'
import { seededRandom } from '../../support/random.ts'
import { type Frame, openLossy, Stage } from '../../support/reliability.ts'
import { until } from '../../support/until.ts'

const one = (number: number): Buffer => Buffer.from([number])
const sequencesOf = (frames: readonly Frame[]): number[] =>
  frames.filter(frame => frame.kind === KIND_DATA).map(frame => frame.sequence)

t.test('what is ordered and reliable already stays as it is', async t => {
  const [near] = openLoopbackPair()
  t.equal(reliable(near), near)
  t.equal(reliable(wrapWithFaults(near, { seed: 1 })).driver, 'fault:loopback')
  for (const faults of [{ loss: 0.1 }, { reordering: 0.1 }]) {
    const [inner] = openLoopbackPair()
    const end = reliable(wrapWithFaults(inner, { seed: 1, ...faults }))
    t.type(end, ReliableInterface)
    t.match(end.capabilities, {
      ordered: true,
      reliable: true,
      frameMax: RETENTION_BYTES_DEFAULT / 4,
      inlineMax: inner.capabilities.frameMax - HEADER_SIZE,
      rdmaRead: true,
      wakeFd: false,
    })
  }
})

t.test('options that cannot be are ERR_AM_ARGUMENT', async t => {
  const [near] = openLoopbackPair()
  const wrong = [
    { retentionBytes: 1000 },
    { retentionBytes: 8192 },
    { retentionBytes: 2 ** 31 },
    { retentionBytes: 3 << 16 },
    { peerTimeoutMs: 0 },
    { peerTimeoutMs: Number.NaN },
    { firstSequence: -1 },
    { firstSequence: 2 ** 32 },
    { firstSequence: 0.5 },
  ]
  for (const options of wrong) {
    t.throws(() => new ReliableInterface(near, options), { code: 'ERR_AM_ARGUMENT' }, JSON.stringify(options))
  }
})

t.test('the bytes of a frame are as drawn', async t => {
  const [near, far] = openLoopbackPair()
  const end = new ReliableInterface(near, { firstSequence: 7 })
  sendFrame(end, Buffer.from('hello'))
  t.equal(
    drain(far)[0]?.toString('hex').replace(/.{8}/g, '$& ').trim(),
    '1e89f3d7 00000000 07000000 07000000 07000000 06000000 00000000 00000000 68656c6c 6f',
  )
})

t.test('frames carry numbers, and acknowledge what has come the other way', async t => {
  const peer = new Stage(t)
  const { end } = peer
  for (let i = 0; i < 3; i++) sendFrame(end, one(i))
  t.match(peer.sent(), [
    { kind: KIND_DATA, sequence: 0, ordinal: 0, ack: 0, echo: -1, content: one(0) },
    { kind: KIND_DATA, sequence: 1, ordinal: 1, ack: 0, echo: -1, content: one(1) },
    { kind: KIND_DATA, sequence: 2, ordinal: 2, ack: 0, echo: -1, content: one(2) },
  ])
  peer.say({ sequence: 0, ordinal: 5, content: one(10), ack: 2, echo: 1 })
  t.strictSame(drain(end), [one(10)])
  t.equal(end.unacknowledged, 1)
  sendFrame(end, one(3))
  t.match(peer.sent(), [{ sequence: 3, ordinal: 3, ack: 1, echo: 5 }])
})

t.test('an acknowledgement goes alone after half a window, after a short time, or before sleep', async t => {
  const peer = new Stage(t)
  const { end } = peer
  for (let i = 0; i < WINDOW_FRAMES / 2; i++) peer.say({ sequence: i, ordinal: i })
  t.equal(end.poll(new Collector(), WINDOW_FRAMES / 2 - 1), WINDOW_FRAMES / 2 - 1)
  t.strictSame(peer.sent(), [])
  drain(end)
  t.match(peer.sent(), [{ kind: KIND_ACK, ack: WINDOW_FRAMES / 2 }])

  peer.say({ sequence: WINDOW_FRAMES / 2, ordinal: WINDOW_FRAMES / 2 })
  t.equal(drain(end).length, 1)
  const [late] = await until('the acknowledgement', () => {
    end.poll(new Collector(), 1)
    const frames = peer.sent()
    return frames.length > 0 && frames
  })
  t.match(late, { kind: KIND_ACK, ack: WINDOW_FRAMES / 2 + 1 })

  peer.say({ sequence: WINDOW_FRAMES / 2 + 1, ordinal: WINDOW_FRAMES / 2 + 1 })
  t.equal(drain(end).length, 1)
  peer.sent()
  t.equal(end.arm(0), true)
  t.match(peer.sent(), [{ kind: KIND_ACK, ack: WINDOW_FRAMES / 2 + 2 }])
  t.equal(end.arm(0), true)
  t.strictSame(peer.sent(), [], 'and only once')
})

t.test('half of the bytes of a window are acknowledged at once, too', async t => {
  const peer = new Stage(t, { retentionBytes: 1 << 16 })
  const { end } = peer
  for (let i = 0; i < 8; i++) peer.say({ sequence: i, ordinal: i, content: Buffer.alloc(4096) })
  t.equal(end.poll(new Collector(), 7), 7)
  t.strictSame(peer.sent(), [])
  t.equal(end.poll(new Collector(), 1), 1)
  t.match(peer.sent(), [{ kind: KIND_ACK, ack: 8 }])
})

t.test('a frame that comes again is handed over once, and acknowledged again', async t => {
  const peer = new Stage(t)
  const { end } = peer
  for (let i = 0; i < 2; i++) peer.say({ sequence: 0, ordinal: i, content: one(1) })
  t.strictSame(drain(end), [one(1)])
  t.match(peer.sent(), [{ kind: KIND_ACK, ack: 1, echo: 1 }])
  t.equal(end.stats.duplicates, 1)
})

t.test('frames that come too early wait for their turn, and SACK says which', async t => {
  const peer = new Stage(t)
  const { end } = peer
  for (const sequence of [3, 1, 2, 1, 70]) peer.say({ sequence, ordinal: 0, content: one(sequence) })
  t.strictSame(drain(end), [])
  t.match(peer.sent(), [
    { kind: KIND_ACK, ack: 0, sacked: [1, 2, 3] },
    { kind: KIND_ACK, ack: 0, sacked: [70] },
  ])
  peer.say({ sequence: 0, ordinal: 0, content: one(0) })
  t.strictSame(drain(end), [one(0), one(1), one(2), one(3)])
  t.match(end.stats, { early: 4, duplicates: 1, delivered: 4 })
})

t.test('a limit is kept, whatever waits: the rest comes with the next poll', async t => {
  const peer = new Stage(t)
  const { end } = peer
  for (const sequence of [5, 4, 3, 2, 1, 0, 6]) peer.say({ sequence, content: one(sequence) })
  const collector = new Collector()
  t.equal(end.poll(collector, 0), 0)
  t.equal(end.poll(collector, 4), 4)
  t.equal(end.arm(0), false, 'there is something to do')
  t.equal(end.poll(collector, 4), 3)
  t.strictSame(
    collector.frames,
    Array.from({ length: 7 }, (_, i) => one(i)),
  )
})

t.test('a sink that throws has had its frame, also one that had come too early', async t => {
  const peer = new Stage(t)
  const { end } = peer
  for (const sequence of [1, 2, 0, 3]) peer.say({ sequence, content: one(sequence) })
  const seen: number[] = []
  const thrower = new Handler(content => {
    seen.push(content[0] as number)
    throw new Error(`at ${content[0]}`)
  })
  for (let i = 0; i < 4; i++) t.throws(() => end.poll(thrower, 10), new Error(`at ${i}`))
  t.equal(end.poll(thrower, 10), 0)
  t.strictSame(seen, [0, 1, 2, 3])
})

t.test('a frame is sent again when three later ones have arrived, and not before', async t => {
  const peer = new Stage(t)
  const { end } = peer
  for (let i = 0; i < 5; i++) sendFrame(end, one(i))
  peer.sent()
  peer.say({ kind: KIND_ACK, ack: 0, echo: 2, sacked: [1, 2] })
  end.poll(new Collector(), 1)
  t.strictSame(peer.sent(), [])
  peer.say({ kind: KIND_ACK, ack: 0, echo: 3, sacked: [1, 2, 3] })
  end.poll(new Collector(), 1)
  t.match(peer.sent(), [{ sequence: 0, ordinal: 5, content: one(0) }])
  t.equal(end.outstanding, 2, 'frames 0 and 4')

  // Its second transmission is lost only when three later than that have arrived.
  for (let i = 5; i < 8; i++) sendFrame(end, one(i))
  peer.say({ kind: KIND_ACK, ack: 0, echo: 7, sacked: [1, 2, 3, 4, 5, 6] })
  end.poll(new Collector(), 1)
  t.strictSame(sequencesOf(peer.sent()), [5, 6, 7])
  peer.say({ kind: KIND_ACK, ack: 0, echo: 8, sacked: [1, 2, 3, 4, 5, 6, 7] })
  end.poll(new Collector(), 1)
  t.strictSame(sequencesOf(peer.sent()), [0])
  t.equal(end.stats.resent, 2)
})

t.test('selective acknowledgements stop needless transmissions', async t => {
  const { wire, near, far } = openLossy(t, number => number % 50 === 7)
  const sink = new NumberedSink(far)
  for (let number = 0; number < 10_000; ) {
    for (let i = 0; i < 64 && number < 10_000; i++) if (sendNumbered(near, number) === OK) number++
    far.poll(sink, 64)
    near.poll(new Collector(), 64)
  }
  await until('all frames', () => {
    far.poll(sink, 64)
    near.poll(new Collector(), 64)
    return sink.next === 10_000
  })
  t.equal(sink.wrong, 0)
  t.ok(wire.lost > 200)
  // What a time-out sends again may be needless: the machine may have been busy with others.
  t.ok(near.stats.resent <= wire.lost + 2 * near.stats.timeouts, `${near.stats.resent} for ${wire.lost}`)
})

t.test('the window: so many frames are taken, and not one more until one is handed over', async t => {
  const peer = new Stage(t)
  const { end } = peer
  t.strictSame(fill(end, 0), { count: WINDOW_FRAMES, refusal: NO_RESOURCE })
  peer.say({ kind: KIND_ACK, ack: 1, echo: 0 })
  t.equal(end.hasRoom(0), true, 'it is seen without a poll')
  t.strictSame(fill(end, 0), { count: 1, refusal: NO_RESOURCE })
  peer.say({ kind: KIND_ACK, ack: 1, echo: 9, sacked: [2, 3, 4, 5, 6, 7, 8, 9] })
  t.equal(end.hasRoom(0), false, 'what waits at the peer holds its place')
})

t.test('what finds no room below waits, and goes in order when there is some', async t => {
  const [inner, far] = openLoopbackPair(64 * 1024)
  const end = new ReliableInterface(inner)
  const { count, refusal } = fill(end, 1000)
  t.equal(refusal, NO_RESOURCE)
  t.ok(count > 1000, 'more than the queue below takes')
  const peer = new ReliableInterface(far)
  let arrived = 0
  await until('all frames', () => {
    arrived += drain(peer).length
    end.poll(new Collector(), 1)
    return arrived === count
  })
  t.equal(peer.stats.early, 0)
})

t.test('numbers may wrap', async t => {
  const COUNT = 5000
  for (const firstSequence of [2 ** 32 - 1, 2 ** 32 - 100, 2 ** 31 - 100, 2 ** 31 - 1]) {
    const random = seededRandom(t)
    const [inner, otherInner] = openLoopbackPair()
    const faults = { loss: 0.05, duplication: 0.05, reordering: 0.05, corruption: 0.05 }
    const near = new ReliableInterface(wrapWithFaults(inner, { ...faults, seed: random.word() }), {
      firstSequence,
    })
    const far = new ReliableInterface(wrapWithFaults(otherInner, { ...faults, seed: random.word() }), {
      firstSequence,
    })
    const sink = new NumberedSink(far)
    let number = 0
    await until(`all frames from ${firstSequence} on`, () => {
      for (let i = 0; i < 200 && number < COUNT; i++) if (sendNumbered(near, number) === OK) number++
      far.poll(sink, 200)
      near.poll(new Collector(), 200)
      return sink.next === COUNT && near.unacknowledged === 0
    })
    t.equal(sink.wrong, 0)
    t.equal(near.stats.refused + far.stats.refused, 0)
    near.close()
    far.close()
  }
})
