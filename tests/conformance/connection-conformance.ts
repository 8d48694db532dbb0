import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import { type Driver, OK } from '../../nic/index.ts'
import { drain, patterned, sendFrame } from '../support/frames.ts'
import { connectPair, QUEUE_SIZE } from './pairs.ts'

export async function testConnection(t: Test, driver: Driver): Promise<void> {
  await testCapabilities(t, driver)
  await testOffers(t, driver)
}

async function testCapabilities(t: Test, driver: Driver): Promise<void> {
  await t.test('both ends tell their driver and the same limits', async t => {
    const [near, far] = await connectPair(t, driver)
    for (const end of [near, far]) {
      // The reliability layer is part of the connection, and no driver.
      t.equal(end.driver, driver.name.replace(/^reliable:/, ''))
      t.equal(end.state, 'open')
      t.equal(end.failure, undefined)
      t.ok(end.capabilities.frameMax > 0)
      t.ok(end.capabilities.inlineMax <= end.capabilities.frameMax)
      t.equal(
        end.capabilities.rdmaReason === undefined,
        end.capabilities.rdmaRead && end.capabilities.rdmaWrite,
      )
    }
    t.equal(near.capabilities.frameMax, far.capabilities.frameMax)
  })

  await t.test('a larger queue has room for more', async t => {
    const count = async (queueSize: number): Promise<number> => {
      const offer = driver.offer({ queueSize })
      const [near, far] = await Promise.all([driver.connect(offer.blob), offer.accepted])
      let count = 0
      while (sendFrame(near, patterned(1000, count)) === OK) count++
      near.close()
      far.close()
      return count
    }
    t.ok((await count(4 * QUEUE_SIZE)) >= 3 * (await count(QUEUE_SIZE)))
  })

  await t.test('a queue size that cannot be is ERR_NIC_ARGUMENT', async t => {
    for (const queueSize of [0, -1, 1000, QUEUE_SIZE + 8, 2 ** 31, 2 ** 40, Number.NaN]) {
      t.throws(() => driver.offer({ queueSize }), { code: 'ERR_NIC_ARGUMENT' }, `${queueSize}`)
    }
  })
}

async function testOffers(t: Test, driver: Driver): Promise<void> {
  await t.test('a blob that the driver did not make is ERR_NIC_BAD_ADDRESS', async t => {
    const offer = driver.offer()
    const { length } = offer.blob
    const defaced = Buffer.from(offer.blob)
    defaced[0] = ~(defaced[0] as number)
    const longer = Buffer.concat([offer.blob, Buffer.from([0])])
    const strange = [Buffer.alloc(0), Buffer.alloc(1), offer.blob.subarray(1), longer, defaced]
    for (const blob of [...strange, randomBytes(length), randomBytes(1000)]) {
      await t.rejects(driver.connect(blob), { code: 'ERR_NIC_BAD_ADDRESS' }, `${blob.length} bytes`)
    }
    offer.cancel()
  })

  await t.test('a cancelled offer is rejected, and no connect can take it up', async t => {
    const offer = driver.offer()
    offer.cancel()
    await t.rejects(offer.accepted, { code: 'ERR_NIC_CONNECT_FAILED' })
    await t.rejects(driver.connect(offer.blob), { name: 'NicError' })
    offer.cancel()
  })

  await t.test('an offer that expires is rejected, and no connect can take it up', async t => {
    const offer = driver.offer({ timeoutMs: 1 })
    // The driver's own timer does not keep the event loop alive.
    const awake = setInterval(() => {}, 1000)
    await t.rejects(offer.accepted, { code: 'ERR_NIC_CONNECT_FAILED' })
    clearInterval(awake)
    await t.rejects(driver.connect(offer.blob), { name: 'NicError' })
  })

  await t.test('an offer is for one peer: the second who comes is refused, the first goes on', async t => {
    const offer = driver.offer({ queueSize: QUEUE_SIZE })
    const [near, far] = await Promise.all([driver.connect(offer.blob), offer.accepted])
    await t.rejects(driver.connect(offer.blob), { name: 'NicError' })
    offer.cancel()
    sendFrame(near, patterned(8, 1))
    t.strictSame(drain(far), [patterned(8, 1)])
    near.close()
    far.close()
  })

  await t.test('offers that stand at the same time are taken up each by its own peer', async t => {
    const offers = Array.from({ length: 8 }, () => driver.offer({ queueSize: QUEUE_SIZE }))
    const backwards = [...offers].reverse()
    const near = (await Promise.all(backwards.map(offer => driver.connect(offer.blob)))).reverse()
    const far = await Promise.all(offers.map(offer => offer.accepted))
    near.forEach((end, i) => {
      sendFrame(end, patterned(20, i))
    })
    far.forEach((end, i) => {
      t.strictSame(drain(end), [patterned(20, i)])
    })
    for (const end of [...near, ...far]) end.close()
  })
}
