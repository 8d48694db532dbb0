import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Test } from 'tap'
import { BROKEN, CLOSED, type Driver, OK } from '../../nic/index.ts'
import { Child } from '../support/child.ts'
import { Collector, drain, patterned, sendFrame } from '../support/frames.ts'
import { until } from '../support/until.ts'
import { connectPair } from './pairs.ts'

const fixture = new URL('./keep-alive-child.js', import.meta.url)

export async function testLifetime(t: Test, driver: Driver): Promise<void> {
  await t.test('close is idempotent, and afterwards everything answers CLOSED', async t => {
    const [near] = await connectPair(t, driver)
    near.close()
    near.close()
    t.equal(near.state, 'closed')
    t.equal(near.failure, undefined)
    t.equal(near.reserve(8), CLOSED)
    t.equal(near.poll(new Collector(), 8), CLOSED)
    t.equal(near.hasRoom(8), false)
    t.equal(near.arm(0), false)
    t.equal(near.arm(100), false)
    t.doesNotThrow(() => {
      near.disarm()
      near.ref()
      near.unref()
      near.cancel()
      near.setDoorbell(() => {})
    })
  })

  await t.test('a closed interface holds no view of the queues', async t => {
    const [near] = await connectPair(t, driver)
    near.close()
    t.equal(near.sendBytes.length, 0)
    t.equal(near.sendWords.length, 0)
    t.equal(near.receiveWords.length, 0)
  })

  await t.test('what was sent before close is still delivered', async t => {
    const [near, far] = await connectPair(t, driver)
    for (let i = 0; i < 20; i++) sendFrame(near, patterned(100, i))
    near.close()
    const frames = drain(far)
    t.equal(frames.length, 20)
    t.ok(frames.every((frame, i) => frame.equals(patterned(100, i))))
    t.equal(far.state, 'open')
  })

  await t.test('a peer that has closed does not disturb who goes on sending', async t => {
    const [near, far] = await connectPair(t, driver)
    far.close()
    let status = 0
    for (let i = 0; i < 10_000 && status === 0; i++) status = sendFrame(near, patterned(100, i))
    t.ok(status < 0, 'the queue fills up')
    t.not(near.poll(new Collector(), 1), BROKEN)
  })

  await t.test('a peer that closes while we sleep may wake us, and breaks nothing', async t => {
    const [near, far] = await connectPair(t, driver)
    const collector = new Collector()
    near.setDoorbell(() => near.poll(collector, 8))
    near.ref()
    t.equal(near.arm(0), true)
    sendFrame(far, patterned(30, 1))
    far.close()
    await until('the frame', () => collector.frames.length === 1)
    t.equal(near.arm(0), true)
    for (let turn = 0; turn < 10; turn++) await nextTurn()
    t.equal(near.state, 'open')
    t.equal(sendFrame(near, patterned(30, 2)), OK)
    near.unref()
  })

  await t.test('a program without a wait ends by itself', async t => {
    const child = new Child(t, fixture, [driver.name, 'unref'])
    t.same(await child.end(), { code: 0, signal: null }, child.stderr)
  })

  await t.test('a program whose doorbell is held with ref stays alive until it rings', async t => {
    const child = new Child(t, fixture, [driver.name, 'ref'])
    t.same(await child.receive(), { rang: true })
    t.same(await child.end(), { code: 0, signal: null }, child.stderr)
  })

  await t.test('unref takes ref back', async t => {
    const child = new Child(t, fixture, [driver.name, 'ref-unref'])
    t.same(await child.end(), { code: 0, signal: null }, child.stderr)
  })
}
