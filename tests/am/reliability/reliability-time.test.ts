/** What the reliability layer does by the clock: time-outs, probes, silence, sleep. */
import { createHook } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { openEndpoint } from '../../../am/index.ts'
import { KIND_ACK, KIND_DATA, KIND_PROBE } from '../../../am/reliability/reliability-layout.ts'
import { RoundTrip } from '../../../am/reliability/round-trip.ts'
import { drivers as allDrivers, BROKEN, type Driver, faultDriver, OK } from '../../../nic/index.ts'
import { Collector, drain, patterned, sendFrame } from '../../support/frames.ts'
import { NumberedSink, sendNumbered } from '../../support/numbered-frames.ts'
import { seededRandom } from '../../support/random.ts'
import { type Frame, openLossy, Stage } from '../../support/reliability.ts'
import { until } from '../../support/until.ts'

const one = (number: number): Buffer => Buffer.from([number])
const sequencesOf = (frames: readonly Frame[]): number[] =>
  frames.filter(frame => frame.kind === KIND_DATA).map(frame => frame.sequence)

t.test('without an answer a frame is sent again after a time, less and less often', async t => {
  const peer = new Stage(t)
  const { end } = peer
  sendFrame(end, one(1))
  const startMs = performance.now()
  const timesMs: number[] = []
  await until('five transmissions', () => {
    end.poll(new Collector(), 1)
    if (peer.sent().length > 0) timesMs.push(performance.now() - startMs)
    return timesMs.length === 5
  })
  // What is late makes the next gap shorter than it should be; so each is only compared with the shortest allowed.
  timesMs.forEach((ms, i) => {
    t.ok(ms >= 10 * (2 ** i - 1), `transmission ${i} after ${ms} ms`)
  })
  t.equal(end.stats.timeouts, 4)
  peer.say({ kind: KIND_ACK, ack: 1, echo: 0 })
  end.poll(new Collector(), 1)
  t.equal(end.unacknowledged, 0)
})

t.test('a probe that is echoed says that everything before it is lost', async t => {
  const peer = new Stage(t)
  const { end } = peer
  for (let i = 0; i < 20; i++) sendFrame(end, one(i))
  peer.sent()
  const probes = await until('the time-out', () => {
    end.poll(new Collector(), 1)
    const frames = peer.sent()
    return frames.length > 0 && frames
  })
  t.strictSame(sequencesOf(probes), [0, 1])
  peer.say({ kind: KIND_ACK, ack: 1, echo: probes[0]?.ordinal as number })
  end.poll(new Collector(), 1)
  t.strictSame(
    sequencesOf(peer.sent()),
    Array.from({ length: 18 }, (_, i) => i + 2),
    'all but the other probe',
  )
})

t.test('if all has arrived and nothing is acknowledged, a probe asks', async t => {
  const peer = new Stage(t)
  const { end } = peer
  sendFrame(end, one(0))
  peer.sent()
  peer.say({ kind: KIND_ACK, ack: 0, echo: 0, sacked: [0] })
  const frames = await until('the probe', () => {
    end.poll(new Collector(), 1)
    const frames = peer.sent()
    return frames.length > 0 && frames
  })
  t.match(frames, [{ kind: KIND_PROBE }])
  t.equal(end.stats.resent, 0)

  const other = new Stage(t)
  other.say({ kind: KIND_PROBE, ordinal: 0 })
  other.end.poll(new Collector(), 1)
  t.match(other.sent(), [{ kind: KIND_ACK, echo: 0 }], 'and is answered')
})

t.test('a peer that is silent too long is lost, and a sleeping owner is woken', async t => {
  for (const isAsleep of [false, true]) {
    const { end } = new Stage(t, { peerTimeoutMs: 30 })
    let rings = 0
    end.setDoorbell(() => rings++)
    sendFrame(end, one(1))
    if (isAsleep) {
      end.ref()
      t.equal(end.arm(0), true)
      await until('the doorbell', () => rings === 1)
    } else {
      await until('the end', () => end.poll(new Collector(), 1) === BROKEN)
    }
    t.equal(end.state, 'broken')
    t.match(end.failure, { name: 'NicError', code: 'ERR_NIC_PEER_LOST' })
    t.equal(end.poll(new Collector(), 1), BROKEN)
    t.equal(end.reserve(8), BROKEN)
    t.equal(end.hasRoom(8), false)
    t.equal(end.arm(0), false)
    end.close()
    t.equal(end.state, 'closed')
    t.match(end.failure, { code: 'ERR_NIC_PEER_LOST' })
  }
})

t.test('a peer that sends a valid frame is not lost; one that owes nothing may be silent', async t => {
  const peer = new Stage(t, { peerTimeoutMs: 30 })
  const { end } = peer
  for (let startMs = performance.now(); performance.now() - startMs < 60; ) {
    end.poll(new Collector(), 1)
    await sleep(1)
  }
  t.equal(end.state, 'open')
  sendFrame(end, one(1))
  for (let startMs = performance.now(); performance.now() - startMs < 60; ) {
    peer.say({ kind: KIND_ACK })
    end.poll(new Collector(), 1)
  }
  t.equal(end.state, 'open')
})

t.test('noise is no sign of life', async t => {
  const random = seededRandom(t)
  const peer = new Stage(t, { peerTimeoutMs: 30 })
  const { end } = peer
  sendFrame(end, one(1))
  await until('the end', () => {
    peer.sayBytes(random.bytes(random.within(0, 100)))
    return end.poll(new Collector(), 10) === BROKEN
  })
  t.ok(end.stats.damaged > 0)
})

t.test('sleepers send again what was lost, and only the receiver is woken', async t => {
  const { near, far } = openLossy(t, number => number < 3)
  let nearRings = 0
  let farRings = 0
  near.setDoorbell(() => nearRings++)
  far.setDoorbell(() => farRings++)
  far.ref()
  near.ref()
  t.equal(far.arm(0), true)
  sendFrame(near, patterned(100, 1))
  t.equal(near.arm(0), true)
  await until('the doorbell', () => farRings === 1)
  t.strictSame(drain(far), [patterned(100, 1)])
  t.equal(far.arm(0), true)
  await until('the acknowledgement', () => near.unacknowledged === 0)
  t.equal(nearRings, 0)
  t.equal(farRings, 1)
})

t.test('what is sent while armed is sent again, too', async t => {
  const { near, far } = openLossy(t, number => number === 0)
  far.setDoorbell(() => {})
  far.ref()
  near.ref()
  far.arm(0)
  t.equal(near.arm(0), true)
  sendFrame(near, one(1))
  t.strictSame(await until('the frame', () => far.poll(new Collector(), 1) === 1), true)
})

t.test('an owner that only polls has no timers', async t => {
  const timers = countTimers(t)
  const { near, far } = openLossy(t, number => number % 10 === 0)
  const sink = new NumberedSink(far)
  let number = 0
  while (sink.next < 1000) {
    if (number < 1000 && sendNumbered(near, number) === OK) number++
    far.poll(sink, 10)
    near.poll(new Collector(), 10)
  }
  t.equal(timers.count, 0)
})

t.test('the time-out follows the shortest of the last round trips, within its limits', async t => {
  const roundTrip = new RoundTrip()
  t.equal(roundTrip.timeoutMs, 10, 'before anything was measured')
  roundTrip.handleSample(4)
  t.equal(roundTrip.timeoutMs, 8)
  roundTrip.handleSample(100)
  t.equal(roundTrip.timeoutMs, 8, 'one that contains a mishap changes nothing')
  roundTrip.backOff()
  t.equal(roundTrip.timeoutMs, 16)
  for (let i = 0; i < 100; i++) roundTrip.backOff()
  t.equal(roundTrip.timeoutMs, 250, 'no more than that')
  roundTrip.recover()
  t.equal(roundTrip.timeoutMs, 8)
  for (let i = 0; i < 8; i++) roundTrip.handleSample(20)
  t.equal(roundTrip.timeoutMs, 40, 'the old ones are forgotten')
  roundTrip.handleSample(0.01)
  t.equal(roundTrip.timeoutMs, 1, 'no less than that')
})

t.test('two who owe each other nothing sleep without timers', async t => {
  const { near, far } = openLossy(t, number => number === 1)
  for (const end of [near, far]) {
    end.setDoorbell(() => {})
    end.ref()
  }
  t.equal(far.arm(0), true)
  sendFrame(near, one(1))
  sendFrame(near, one(2))
  t.equal(near.arm(0), true)
  await until('both frames', () => {
    drain(far)
    return far.stats.delivered === 2
  })
  t.equal(far.arm(0), true)
  await until('the acknowledgement', () => near.unacknowledged === 0)
  const pause = sleep(20)
  const timers = countTimers(t)
  await pause
  t.equal(timers.count, 0)
})

t.test('active messages run over a bad network, also from sleep', async t => {
  const ECHO = 10
  const ANSWER = 20
  const COUNT = 300
  const faults = {
    loss: 0.1,
    duplication: 0.1,
    reordering: 0.1,
    corruption: 0.1,
    seed: seededRandom(t).word(),
  }
  const drivers = [faultDriver(allDrivers.get('loopback') as Driver, faults)]
  const server = await openEndpoint({ drivers })
  const client = await openEndpoint({ drivers })
  t.teardown(() => Promise.all([server.close(), client.close()]))
  server.setHandler(ECHO, message => message.reply(ANSWER, message.word(0) * 2))
  await client.map(0, server.name)
  for (let number = 0; number < COUNT; number++) {
    t.equal((await client.call(0, ECHO, undefined, [number])).word(0), 2 * number)
    if (number % 100 === 0) await sleep(5)
  }
})

/** Counts the timers that are made from now on to the end of the test. */
function countTimers(t: Test): { count: number } {
  const timers = { count: 0 }
  const hook = createHook({
    init: (_id, type) => {
      if (type === 'Timeout') timers.count++
    },
  }).enable()
  t.teardown(() => void hook.disable())
  return timers
}
