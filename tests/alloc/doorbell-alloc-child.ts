/** Counts the bytes of garbage that one ring of a doorbell makes, from the commit to the listener. */
import { type Driver, drivers, type FrameSink } from '../../nic/index.ts'

const WARM_UP = 10_000
const COUNT = 10_000
const FRAME_LENGTH = 8

const shm = drivers.get('shm') as Driver
const offer = shm.offer()
const [near, far] = await Promise.all([shm.connect(offer.blob), offer.accepted])
const sink: FrameSink = { handleFrame() {} }
let rings = 0
let before = 0
let bytes: number | undefined

function ringAgain(): void {
  far.poll(sink, 1)
  rings++
  if (rings === WARM_UP) {
    globalThis.gc?.()
    before = process.memoryUsage().heapUsed
  }
  if (rings === WARM_UP + COUNT) {
    bytes = (process.memoryUsage().heapUsed - before) / COUNT
    return
  }
  if (!far.arm(0)) throw new Error('a frame that was not sent')
  near.reserve(FRAME_LENGTH)
  near.commit(FRAME_LENGTH)
}

far.setDoorbell(ringAgain)
far.ref()
ringAgain()
// A timer: whatever waits turn by turn allocates on every turn.
const timer = setInterval(() => {
  if (bytes === undefined) return
  clearInterval(timer)
  process.send?.({ bytes }, () => process.exit())
}, 50)
