import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Test } from 'tap'
import { NO_RESOURCE, OK, type VirtualInterface } from '../../nic/index.ts'
import { Collector, drain, fill, patterned, sendFrame } from '../support/frames.ts'
import { until } from '../support/until.ts'
import type { MakePair } from './pairs.ts'

export async function testDoorbell(t: Test, makePair: MakePair): Promise<void> {
  await testFrameWakes(t, makePair)
  await testRoomWakes(t, makePair)
  await testSilence(t, makePair)
}

class RingCounter {
  rings = 0

  constructor(end: VirtualInterface) {
    end.setDoorbell(() => {
      this.rings++
    })
    // The doorbell is all that these tests wait for.
    end.ref()
  }
}

async function testFrameWakes(t: Test, makePair: MakePair): Promise<void> {
  await t.test('arm refuses while a frame waits, and agrees once it was polled', async t => {
    const [near, far] = await makePair(t)
    sendFrame(near, patterned(8, 1))
    t.equal(far.arm(0), false)
    t.equal(drain(far).length, 1)
    t.equal(far.arm(0), true)
  })

  await t.test('an armed interface is woken by the next frame, each time that it is armed', async t => {
    const [near, far] = await makePair(t)
    const bell = new RingCounter(far)
    for (let round = 1; round <= 3; round++) {
      t.equal(far.arm(0), true)
      sendFrame(near, patterned(8, round))
      await until('the doorbell', () => bell.rings === round)
      t.strictSame(drain(far), [patterned(8, round)])
    }
  })

  await t.test('the doorbell rings from the event loop, not from within commit', async t => {
    const [near, far] = await makePair(t)
    const bell = new RingCounter(far)
    t.equal(far.arm(0), true)
    sendFrame(near, patterned(8, 1))
    t.equal(bell.rings, 0, 'commit has returned, and the listener was not called yet')
    await until('the doorbell', () => bell.rings === 1)
  })

  await t.test('the doorbell listener may poll', async t => {
    const [near, far] = await makePair(t)
    const collector = new Collector()
    far.setDoorbell(() => {
      far.poll(collector, 10)
    })
    far.ref()
    t.equal(far.arm(0), true)
    sendFrame(near, patterned(8, 1))
    await until('the frame', () => collector.frames.length === 1)
    t.strictSame(collector.frames, [patterned(8, 1)])
  })
}

async function testRoomWakes(t: Test, makePair: MakePair): Promise<void> {
  await t.test('arm for room refuses while the room is there', async t => {
    const [near] = await makePair(t)
    t.equal(near.arm(near.capabilities.frameMax), false)
  })

  await t.test('a producer that waits for room is woken when the peer has released it', async t => {
    const [near, far] = await makePair(t)
    const { frameMax } = near.capabilities
    const bell = new RingCounter(near)
    for (let round = 1; round <= 3; round++) {
      t.equal(fill(near, 100).refusal, NO_RESOURCE)
      t.equal(near.arm(frameMax), true)
      drain(far)
      await until('the doorbell', () => bell.rings === round)
      near.disarm()
      t.equal(near.hasRoom(frameMax), true)
      t.equal(sendFrame(near, patterned(frameMax, round)), OK)
      t.strictSame(drain(far), [patterned(frameMax, round)])
    }
  })

  await t.test('an end that waits for room is woken by a frame as well', async t => {
    const [near, far] = await makePair(t)
    const bell = new RingCounter(near)
    fill(near, 100)
    t.equal(near.arm(100), true)
    sendFrame(far, patterned(8, 1))
    await until('the doorbell', () => bell.rings === 1)
    t.strictSame(drain(near), [patterned(8, 1)])
  })
}

/** What must not ring: shown by another pair's bell, rung afterwards, which has been heard while this one was silent. */
async function testSilence(t: Test, makePair: MakePair): Promise<void> {
  const ringAnother = async (): Promise<void> => {
    const [near, far] = await makePair(t)
    const bell = new RingCounter(far)
    far.arm(0)
    sendFrame(near, patterned(8, 1))
    await until('the other doorbell', () => bell.rings === 1)
    for (let turn = 0; turn < 10; turn++) await nextTurn()
  }

  await t.test('an interface that was never armed is not woken', async t => {
    const [near, far] = await makePair(t)
    const bell = new RingCounter(far)
    sendFrame(near, patterned(8, 1))
    await ringAnother()
    t.equal(bell.rings, 0)
  })

  await t.test('one arming rings once, however many frames come', async t => {
    const [near, far] = await makePair(t)
    const bell = new RingCounter(far)
    far.arm(0)
    for (let i = 0; i < 5; i++) sendFrame(near, patterned(8, i))
    await until('the doorbell', () => bell.rings > 0)
    sendFrame(near, patterned(8, 5))
    await ringAnother()
    t.equal(bell.rings, 1)
  })

  await t.test('a disarmed interface is woken neither by a frame nor by room', async t => {
    const [near, far] = await makePair(t)
    const farBell = new RingCounter(far)
    const nearBell = new RingCounter(near)
    far.arm(0)
    far.disarm()
    fill(near, 100)
    near.arm(100)
    near.disarm()
    drain(far)
    await ringAnother()
    t.equal(farBell.rings, 0)
    t.equal(nearBell.rings, 0)
  })

  await t.test('arm that refused has armed nothing', async t => {
    const [near, far] = await makePair(t)
    const bell = new RingCounter(far)
    sendFrame(near, patterned(8, 1))
    t.equal(far.arm(0), false)
    sendFrame(near, patterned(8, 2))
    await ringAnother()
    t.equal(bell.rings, 0)
  })

  await t.test('a closed interface is not woken, though it was armed', async t => {
    const [near, far] = await makePair(t)
    const bell = new RingCounter(far)
    far.arm(0)
    far.close()
    sendFrame(near, patterned(8, 1))
    await ringAnother()
    t.equal(bell.rings, 0)
  })
}
