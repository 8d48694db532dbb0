/** Proves the RDMA device: frames leave by it and come back by it, to this process. */
import {
  type Driver,
  describeDevice,
  drivers,
  type FrameSink,
  type VirtualInterface,
} from '../../../nic/index.ts'
import { allowsDriver } from '../../policy/own-policy.ts'
import { withDeadline } from '../deadline.ts'
import type { Check } from './check.ts'

const FRAME_LENGTH = 64
const ROUND_TRIP_COUNT = 1000
/** No round trip begins after this time: a slow machine makes fewer than `ROUND_TRIP_COUNT`. */
const ENOUGH_MS = 1000
const TIMEOUT_MS = 10_000

/** Empty if no such driver can or may be used: the driver's check says why. */
export async function deviceCheck(): Promise<Check[]> {
  const driver = drivers.get('verbs')
  if (driver === undefined || !driver.availability().usable || !allowsDriver(driver.name)) return []
  const name = `live test ${driver.name}`
  try {
    const roundTripUs = await withDeadline(echo(driver), 2 * TIMEOUT_MS, 'nothing came back in time')
    const detail = `frames leave by ${describeDevice()} and come back, round trip ${roundTripUs.toFixed(1)} us (p50)`
    return [{ name, state: 'ok', detail }]
  } catch (error) {
    const hint = 'other hosts are reached over TCP; docs/guide/rdma.md says what the device needs'
    return [{ name, state: 'failed', detail: (error as Error).message, hint }]
  }
}

/** Compares what arrives with what was sent. */
class Expecting implements FrameSink {
  word = 0
  arrived = 0
  wrong = 0

  handleFrame(bytes: Uint8Array, offset: number, length: number): void {
    const at = new DataView(bytes.buffer, bytes.byteOffset + offset, length)
    const isRight = length === FRAME_LENGTH && at.getUint32(length - 4, true) === this.word
    this.arrived++
    if (!isRight) this.wrong++
  }
}

/** Connects two ends through the device; resolves to the median of the round trips between them. */
async function echo(driver: Driver): Promise<number> {
  const offer = driver.offer({ timeoutMs: TIMEOUT_MS })
  const [near, far] = await Promise.all([
    driver.connect(offer.blob, { timeoutMs: TIMEOUT_MS }),
    offer.accepted,
  ])
  try {
    const elapsedUs: number[] = []
    const endMs = performance.now() + ENOUGH_MS
    const sink = new Expecting()
    for (let i = 0; i < ROUND_TRIP_COUNT && (i === 0 || performance.now() < endMs); i++) {
      const startMs = performance.now()
      sink.word = i
      send(near, far, sink)
      send(far, near, sink)
      elapsedUs.push((performance.now() - startMs) * 1000)
    }
    return elapsedUs.sort((a, b) => a - b)[Math.floor(elapsedUs.length / 2)] as number
  } finally {
    near.close()
    far.close()
  }
}

/** Polls without the event loop, so that the time is the device's, not Node's. */
function send(from: VirtualInterface, to: VirtualInterface, sink: Expecting): void {
  const at = from.reserve(FRAME_LENGTH)
  if (at < 0) throw new Error(`the device takes no frame: status ${at}`)
  const bytes = from.sendBytes
  new DataView(bytes.buffer, bytes.byteOffset + at, FRAME_LENGTH).setUint32(FRAME_LENGTH - 4, sink.word, true)
  from.commit(FRAME_LENGTH)
  const before = sink.arrived
  const deadlineMs = performance.now() + TIMEOUT_MS
  while (sink.arrived === before) {
    if (to.poll(sink, 1) < 0) throw to.failure ?? new Error('the connection broke')
    if (performance.now() > deadlineMs)
      throw new Error(`a frame did not arrive within ${TIMEOUT_MS / 1000} s`)
  }
  if (sink.wrong > 0) throw new Error('other bytes arrived than were sent')
}
