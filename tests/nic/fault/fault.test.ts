import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import {
  type FaultInterface,
  type FaultOptions,
  faultDriver,
  NO_RESOURCE,
  OK,
  openLoopbackPair,
  type VirtualInterface,
  wrapWithFaults,
} from '../../../nic/index.ts'
import { Collector, CompletionLog, drain, fill, patterned, sendFrame } from '../../support/frames.ts'
import { seededRandom } from '../../support/random.ts'
import { until } from '../../support/until.ts'
import { driverNamed } from '../../support/wrapped-drivers.ts'

const COUNT = 10_000
const LENGTH = 16
const RATE = 0.1

interface Faulty {
  readonly near: FaultInterface
  readonly far: VirtualInterface
}

/** A pair whose near end sends with faults, from a seed that is printed. */
function openFaulty(t: Test, faults: Omit<FaultOptions, 'seed'>): Faulty {
  const [inner, far] = openLoopbackPair()
  const near = wrapWithFaults(inner, { ...faults, seed: seededRandom(t).word() })
  t.teardown(() => {
    near.close()
    far.close()
  })
  return { near, far }
}

/** Sends `COUNT` numbered frames, then polls near until nothing is held; returns the numbers in order of arrival. */
function exchange({ near, far }: Faulty, count = COUNT): Buffer[] {
  const arrived: Buffer[] = []
  for (let number = 0; number < count; number++) {
    const frame = Buffer.alloc(LENGTH)
    frame.writeUInt32LE(number)
    if (sendFrame(near, frame) !== OK) throw new Error(`no room for frame ${number}`)
    arrived.push(...drain(far))
  }
  for (let poll = 0; poll < 20; poll++) drain(near)
  arrived.push(...drain(far))
  return arrived
}

const numbersOf = (frames: readonly Buffer[]): number[] => frames.map(frame => frame.readUInt32LE())
const inOrder = (numbers: readonly number[]): number[] => [...numbers].sort((a, b) => a - b)
const allNumbers = Array.from({ length: COUNT }, (_, i) => i)

/** Five standard deviations of a binomial: once in a million seeds it is outside. */
function isLikely(count: number, rate = RATE): boolean {
  return Math.abs(count - COUNT * rate) < 5 * Math.sqrt(COUNT * rate * (1 - rate))
}

t.test('loss: as many frames as were counted do not arrive, the others in order', async t => {
  const pair = openFaulty(t, { loss: RATE })
  const numbers = numbersOf(exchange(pair))
  const { sent, lost } = pair.near.counts
  t.equal(sent, COUNT)
  t.ok(isLikely(lost), `${lost} lost`)
  t.equal(numbers.length, COUNT - lost)
  t.strictSame(numbers, inOrder(numbers))
  t.equal(new Set(numbers).size, numbers.length)
})

t.test('a loss of 1 loses everything, one of 0 nothing', async t => {
  t.equal(exchange(openFaulty(t, { loss: 1 })).length, 0)
  t.equal(exchange(openFaulty(t, { loss: 0 })).length, COUNT)
})

t.test('duplication: as many frames as were counted arrive twice, one copy behind the other', async t => {
  const pair = openFaulty(t, { duplication: RATE })
  const numbers = numbersOf(exchange(pair))
  const { duplicated } = pair.near.counts
  t.ok(isLikely(duplicated), `${duplicated} duplicated`)
  t.equal(numbers.length, COUNT + duplicated)
  t.strictSame([...new Set(numbers)], allNumbers)
  t.strictSame(numbers, inOrder(numbers))
})

t.test('reordering: everything arrives once, no frame later than its distance allows', async t => {
  const reorderDistance = 5
  const pair = openFaulty(t, { reordering: RATE, reorderDistance })
  const numbers = numbersOf(exchange(pair))
  t.ok(isLikely(pair.near.counts.reordered), `${pair.near.counts.reordered} reordered`)
  t.strictSame(inOrder(numbers), allNumbers)
  let overtaken = 0
  let mostPassed = 0
  numbers.forEach((number, place) => {
    // Only frames that were sent at most so much later can have come before it; others were held meanwhile, too.
    const passed = numbers.slice(Math.max(0, place - 50), place).filter(other => other > number).length
    if (passed > 0) overtaken++
    mostPassed = Math.max(mostPassed, passed)
  })
  t.ok(overtaken > COUNT * RATE * 0.5, `${overtaken} were overtaken`)
  t.ok(mostPassed <= 4 * reorderDistance, `by ${mostPassed} at most`)
})

t.test('reordering: the last frame is not held for ever', async t => {
  const { near, far } = openFaulty(t, { reordering: 1 })
  sendFrame(near, patterned(8, 1))
  t.equal(drain(far).length, 0, 'nothing has passed it')
  let polls = 0
  await until('the flush', () => {
    near.poll(new Collector(), 1)
    polls++
    return far.poll(new Collector(), 1) === 1
  })
  t.ok(polls > 1 && polls < 50, `after ${polls} polls`)
})

t.test('corruption: as many frames as were counted differ, by 1 to 4 bits', async t => {
  const pair = openFaulty(t, { corruption: RATE })
  const arrived = exchange(pair)
  const differences = new Map<number, number>()
  const flippedBytes = new Set<number>()
  arrived.forEach((frame, number) => {
    const original = Buffer.alloc(LENGTH)
    original.writeUInt32LE(number)
    let bits = 0
    for (let i = 0; i < LENGTH; i++) {
      const flips = (frame[i] as number) ^ (original[i] as number)
      if (flips !== 0) flippedBytes.add(i)
      for (let rest = flips; rest !== 0; rest &= rest - 1) bits++
    }
    differences.set(bits, (differences.get(bits) ?? 0) + 1)
  })
  const { corrupted } = pair.near.counts
  t.ok(isLikely(corrupted), `${corrupted} corrupted`)
  t.equal(arrived.length, COUNT)
  t.equal(differences.get(0), COUNT - corrupted)
  t.strictSame([...differences.keys()].sort(), [0, 1, 2, 3, 4])
  t.equal(flippedBytes.size, LENGTH, 'anywhere in the frame')
})

t.test('corruption of a frame of a single byte, or of none, is possible', async t => {
  const { near, far } = openFaulty(t, { corruption: 1 })
  for (let i = 0; i < 100; i++) sendFrame(near, Buffer.from([0]))
  sendFrame(near, Buffer.alloc(0))
  const frames = drain(far)
  t.ok(frames.slice(0, 100).every(frame => frame.length === 1 && frame[0] !== 0))
  t.strictSame(frames[100], Buffer.alloc(0))
  t.equal(near.counts.corrupted, 100)
})

t.test('delay: nothing arrives before its time, everything after it, by polling', async t => {
  const { near, far } = openFaulty(t, { delay: 1, delayMs: [20, 30] })
  const sentMs = performance.now()
  for (let i = 0; i < 100; i++) sendFrame(near, patterned(8, i))
  let arrived = 0
  let firstMs = 0
  await until('all frames', () => {
    near.poll(new Collector(), 1)
    arrived += drain(far).length
    if (arrived > 0 && firstMs === 0) firstMs = performance.now()
    return arrived === 100
  })
  t.equal(near.counts.delayed, 100)
  t.ok(firstMs - sentMs >= 20, `the first after ${firstMs - sentMs} ms`)
})

t.test('what is held arrives also if its sender sleeps', async t => {
  for (const faults of [
    { delay: 1, delayMs: [2, 4] },
    { reordering: 1 },
    { stall: 1, stallMs: 3 },
  ] satisfies Omit<FaultOptions, 'seed'>[]) {
    const { near, far } = openFaulty(t, faults)
    let rings = 0
    near.setDoorbell(() => rings++)
    near.ref()
    far.setDoorbell(() => {})
    sendFrame(near, patterned(8, 1))
    t.equal(drain(far).length, 0)
    t.equal(near.arm(0), true)
    await until('the frame', () => drain(far).length === 1)
    near.unref()
    t.equal(rings, 0, 'it woke no listener')
  }
})

t.test('stall: nothing passes for its time, then everything in order', async t => {
  const { near, far } = openFaulty(t, { stall: 1, stallMs: 20 })
  const sentMs = performance.now()
  for (let i = 0; i < 50; i++) sendFrame(near, patterned(8, i))
  t.equal(near.counts.stalls, 1, 'one stall does not begin within another')
  const frames = await until('the end of the stall', () => {
    near.poll(new Collector(), 1)
    const arrived = drain(far)
    return arrived.length > 0 && arrived
  })
  t.ok(performance.now() - sentMs >= 20)
  t.strictSame(
    frames,
    Array.from({ length: 50 }, (_, i) => patterned(8, i)),
  )
})

t.test('a stall holds a bounded number of frames; when it is over there is room again', async t => {
  const { near, far } = openFaulty(t, { stall: 1, stallMs: 500 })
  const { count, refusal } = fill(near, 8)
  t.equal(refusal, NO_RESOURCE)
  t.ok(count >= 1000 && count < 1100, `${count} frames`)
  t.equal(near.hasRoom(8), false)
  let rings = 0
  near.setDoorbell(() => rings++)
  near.ref()
  t.equal(near.arm(8), true)
  await until('the doorbell', () => rings === 1)
  near.unref()
  t.equal(near.hasRoom(8), true)
  t.equal(drain(far).length, count)
})

t.test('death: after so many frames nothing passes any more, either way', async t => {
  const { near, far } = openFaulty(t, { deathAfter: 10 })
  for (let i = 0; i < 10; i++) sendFrame(near, patterned(8, i))
  sendFrame(far, patterned(8, 1))
  t.equal(drain(near).length, 1, 'it lives yet')
  t.equal(sendFrame(near, patterned(8, 10)), OK, 'the eleventh is taken, and nothing comes of it')
  sendFrame(far, patterned(8, 2))
  t.equal(near.poll(new Collector(), 10), 0)
  t.equal(drain(far).length, 10)
  for (let i = 0; i < 100_000; i++) if (sendFrame(near, patterned(100, i)) !== OK) t.fail('the dead refuse')
  t.equal(drain(far).length, 0)
  t.equal(near.arm(0), true)
  t.equal(near.state, 'open')
  t.equal(near.counts.sent, 10)
})

t.test('the same seed and the same calls give the same faults, another seed gives others', async t => {
  const faults = { loss: 0.2, duplication: 0.2, reordering: 0.2, corruption: 0.2 }
  const run = (seed: number): string => {
    const [inner, far] = openLoopbackPair()
    return exchange({ near: wrapWithFaults(inner, { ...faults, seed }), far }, 1000)
      .map(frame => frame.toString('hex'))
      .join()
  }
  const seed = seededRandom(t).word()
  t.equal(run(seed), run(seed))
  t.not(run(seed), run((seed + 1) >>> 0))
})

t.test('a driver gives each interface faults of its own, the same in every run', async t => {
  const seed = seededRandom(t).word()
  const run = async (): Promise<string[]> => {
    const driver = faultDriver(driverNamed('loopback'), { seed, loss: 0.5 })
    const ends: VirtualInterface[] = []
    for (let i = 0; i < 2; i++) {
      const offer = driver.offer()
      ends.push(...(await Promise.all([offer.accepted, driver.connect(offer.blob)])))
    }
    const [a, b, c, d] = ends as [FaultInterface, FaultInterface, FaultInterface, FaultInterface]
    const pairs: Faulty[] = [
      { near: a, far: b },
      { near: b, far: a },
      { near: c, far: d },
      { near: d, far: c },
    ]
    return pairs.map(pair => numbersOf(exchange(pair, 200)).join())
  }
  const first = await run()
  t.strictSame(first, await run())
  t.equal(new Set(first).size, 4)
})

t.test('what the inner queue refuses stays held, and goes when there is room', async t => {
  const { near, far } = openFaulty(t, { duplication: 1 })
  const { count, refusal } = fill(near, 1000)
  t.equal(refusal, NO_RESOURCE)
  let arrived = 0
  await until('both copies of each', () => {
    arrived += drain(far).length
    near.poll(new Collector(), 1)
    return arrived === 2 * count
  })
  t.equal(near.hasRoom(1000), true)
})

t.test('a wrapper over a wrapper: the faults add up', async t => {
  const [inner, far] = openLoopbackPair()
  const { seed } = seededRandom(t)
  const lower = wrapWithFaults(inner, { seed, loss: 0.3 })
  const upper = wrapWithFaults(lower, { seed: (seed ^ 1) >>> 0, duplication: 0.3 })
  const arrived = exchange({ near: upper, far })
  t.equal(upper.driver, 'fault:fault:loopback')
  t.equal(lower.counts.sent, COUNT + upper.counts.duplicated)
  t.equal(arrived.length, lower.counts.sent - lower.counts.lost)
  t.ok(isLikely(upper.counts.duplicated, 0.3))
})

t.test('what is held at close still arrives', async t => {
  const { near, far } = openFaulty(t, { delay: 1, delayMs: [1000, 1000] })
  for (let i = 0; i < 10; i++) sendFrame(near, patterned(8, i))
  t.equal(drain(far).length, 0)
  near.close()
  t.equal(drain(far).length, 10)
})

t.test('one-sided access meets no faults', async t => {
  const { near, far } = openFaulty(t, { loss: 1, corruption: 1 })
  const access = { remoteRead: true, remoteWrite: true }
  const local = near.register(patterned(100, 1), access)
  const remoteBytes = new Uint8Array(100)
  const remote = near.importKey(far.register(remoteBytes, access).key)
  t.equal(near.rdmaWrite(local, 0, remote, 0, 100, 7), OK)
  const log = new CompletionLog()
  near.pollCompletions(log, 1)
  t.strictSame(log.completions, [[7, OK]])
  t.ok(patterned(100, 1).equals(remoteBytes))
})

t.test('the capabilities say what the faults have left of order and reliability', async t => {
  const cases: [Omit<FaultOptions, 'seed'>, ordered: boolean, reliable: boolean][] = [
    [{}, true, true],
    [{ stall: 0.1 }, true, true],
    [{ loss: 0.1 }, true, false],
    [{ duplication: 0.1 }, true, false],
    [{ corruption: 0.1 }, true, false],
    [{ deathAfter: 1000 }, true, false],
    [{ reordering: 0.1 }, false, true],
    [{ delay: 0.1 }, false, true],
    [{ reordering: 0.1, loss: 0.1 }, false, false],
  ]
  for (const [faults, ordered, reliable] of cases) {
    const { near, far } = openFaulty(t, faults)
    t.match(near.capabilities, { ...far.capabilities, ordered, reliable }, JSON.stringify(faults))
  }
  const [inner] = openLoopbackPair()
  const lossy = wrapWithFaults(inner, { seed: 1, loss: 0.1 })
  t.equal(wrapWithFaults(lossy, { seed: 1 }).capabilities.reliable, false, 'what is lost below stays lost')
})

t.test('options that cannot be are refused at once, all of them in one error', async t => {
  const wrong: [options: object, message: RegExp][] = [
    [{}, /seed must be a whole number from 0 to 4294967295, not undefined/],
    [{ seed: -1 }, /seed .* not -1/],
    [{ seed: 2 ** 32 }, /seed/],
    [{ seed: 1.5 }, /seed/],
    [{ seed: 1, loss: 1.1 }, /loss must be from 0 to 1, not 1.1/],
    [{ seed: 1, loss: Number.NaN }, /loss .* not NaN/],
    [{ seed: 1, corruption: '1' }, /corruption/],
    [{ seed: 1, reorderDistance: 0 }, /reorderDistance must be a whole number from 1 to 64, not 0/],
    [{ seed: 1, delayMs: 5 }, /delayMs must be \[min, max\] from 0 to 60000/],
    [{ seed: 1, delayMs: [5, 1] }, /delayMs/],
    [{ seed: 1, stallMs: -1 }, /stallMs must be from 0 to 60000/],
    [{ seed: 1, deathAfter: 0.5 }, /deathAfter must be a whole number of frames/],
    [{ seed: 1, lose: 0.5 }, /there is no lose/],
    [{ seed: 1, loss: 2, stall: -1 }, /loss .*; stall/],
  ]
  const loopback = driverNamed('loopback')
  for (const [options, message] of wrong) {
    const error = { code: 'ERR_NIC_ARGUMENT', message }
    t.throws(() => faultDriver(loopback, options as FaultOptions), error)
    t.throws(() => wrapWithFaults(openLoopbackPair()[0], options as FaultOptions), error)
  }
  t.doesNotThrow(() => faultDriver(loopback, { seed: 1, loss: undefined } as unknown as FaultOptions))
})

t.test('a sleeping end is woken through the wrapper', async t => {
  const [near, inner] = openLoopbackPair()
  const far = wrapWithFaults(inner, { seed: 1, loss: 1 })
  let rings = 0
  far.setDoorbell(() => rings++)
  t.equal(far.arm(0), true)
  sendFrame(near, patterned(8, 1))
  await until('the doorbell', () => rings === 1)
  t.strictSame(drain(far), [patterned(8, 1)])
  await sleep(1)
  t.equal(rings, 1)
})

t.test('a frame that is sent while no end polls is not held for ever', async t => {
  const { near, far } = openFaulty(t, { stall: 1, stallMs: 5 })
  t.ok(near.arm(0))
  t.equal(sendFrame(near, patterned(LENGTH, 1)), OK)
  const collector = new Collector()
  await until('the frame', () => far.poll(collector, 1) === 1)
  t.strictSame(collector.frames, [patterned(LENGTH, 1)])
})
