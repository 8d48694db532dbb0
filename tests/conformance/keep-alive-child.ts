/**
 * Holds an armed interface in the way that its arguments say, and nothing else that would keep a program alive. The
 * frame that rings is sent from a timer that does not count: only a program that lives on for its doorbell sees it.
 */
import type { VirtualInterface } from '../../nic/index.ts'
import { patterned, sendFrame } from '../support/frames.ts'
import { driverNamed } from '../support/wrapped-drivers.ts'

const [, , name, mode] = process.argv
const driver = driverNamed(name as string)
const offer = driver.offer()
const [near, far] = await Promise.all([driver.connect(offer.blob), offer.accepted])
process.channel?.unref()

far.setDoorbell(() => {
  far.unref()
  process.send?.({ rang: true })
})
if (mode !== 'unref') far.ref()
if (mode === 'ref-unref') far.unref()
far.arm(0)
if (mode === 'ref') sendLater(near)

function sendLater(end: VirtualInterface): void {
  setTimeout(() => sendFrame(end, patterned(8, 1)), 50).unref()
}
