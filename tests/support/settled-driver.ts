/**
 * A bad network that is fast: whatever one end does, the time until everything has settled passes within the call. So
 * a test that expects a frame once it was committed, as the conformance suite does, finds it.
 */
import { ReliableInterface } from '../../am/index.ts'
import {
  type Driver,
  type FaultInterface,
  ForwardingInterface,
  type FrameSink,
  type VirtualInterface,
  wrapWithFaults,
} from '../../nic/index.ts'
import { RING_SIZE_DEFAULT, RING_SIZE_MIN } from '../../nic/ring/ring-layout.ts'
import { wrapDriver } from '../../nic/wrapper/wrapped-driver.ts'
import { Collector } from './frames.ts'

const SETTLE_MS_MAX = 20_000
const SPACE = 16
const RETAINED = 512 * 1024
const NASTY = {
  loss: 0.02,
  duplication: 0.02,
  reordering: 0.02,
  corruption: 0.02,
  delay: 0.01,
  delayMs: [0, 1],
} as const

export interface SettledDriver extends Driver {
  /** What the network has done so far, all ends together. */
  countFaults(): { lost: number; duplicated: number; reordered: number; corrupted: number }
}

/** With queues of twice the size that was asked for: there is always room for what half of it can retain. */
export function roomyDriver(inner: Driver): Driver {
  return {
    ...inner,
    offer: ({ queueSize = RING_SIZE_DEFAULT, ...options } = {}) =>
      inner.offer({ ...options, queueSize: 2 * queueSize }),
  }
}

/** Over an interface of a roomy driver. */
export function openReliable(inner: VirtualInterface): ReliableInterface {
  // A frame takes at most an eighth of the queue.
  return new ReliableInterface(inner, { retentionBytes: 4 * inner.capabilities.frameMax })
}

/**
 * For drivers with few receive descriptors in a small queue: credits are half of them, and the suite sends up to 100
 * frames before it polls.
 */
export function spaciousDriver(inner: Driver): Driver {
  const roomy: Driver = {
    ...inner,
    offer: ({ queueSize = RING_SIZE_MIN, ...options } = {}) =>
      inner.offer({ ...options, queueSize: SPACE * queueSize }),
  }
  const open = (end: VirtualInterface): VirtualInterface =>
    new ReliableInterface(end, { retentionBytes: RETAINED })
  return wrapDriver(roomy, `reliable:${inner.name}`, open)
}

export function settledDriver(driver: Driver, seed: number): SettledDriver {
  const inner = roomyDriver(driver)
  const pairs = new Map<string, Pair>()
  const name = `settled${seed}:${inner.name}`
  const networks: FaultInterface[] = []
  const wrap = (end: VirtualInterface, blob: Uint8Array): VirtualInterface => {
    const key = Buffer.from(blob).toString('hex')
    const pair = pairs.get(key) ?? new Pair()
    pairs.set(key, pair)
    const faulty = wrapWithFaults(end, { ...NASTY, seed: (seed + networks.length) >>> 0 })
    networks.push(faulty)
    const reliable = openReliable(faulty)
    pair.ends.push(reliable)
    return new SettledInterface(reliable, pair, name)
  }
  return {
    name,
    reach: inner.reach,
    availability: () => inner.availability(),
    offer(options) {
      const offer = inner.offer(options)
      const accepted = offer.accepted.then(end => wrap(end, offer.blob))
      accepted.catch(() => {})
      return { blob: offer.blob, accepted, cancel: () => offer.cancel() }
    },
    connect: async (blob, options) => wrap(await inner.connect(blob, options), blob),
    countFaults() {
      const sum = { lost: 0, duplicated: 0, reordered: 0, corrupted: 0 }
      for (const { counts } of networks) {
        sum.lost += counts.lost
        sum.duplicated += counts.duplicated
        sum.reordered += counts.reordered
        sum.corrupted += counts.corrupted
      }
      return sum
    },
  }
}

class Pair {
  readonly ends: ReliableInterface[] = []
  isBusy = false

  /** Until each frame has arrived, and each that was handed over is acknowledged. */
  settle(): void {
    const deadlineMs = performance.now() + SETTLE_MS_MAX
    while (!this.isBusy && this.ends.every(end => end.state === 'open') && !this.#isSettled()) {
      for (const end of this.ends) end.poll(new Collector(), 0)
      if (performance.now() > deadlineMs) throw new Error('watchdog: the network does not settle')
    }
  }

  #isSettled(): boolean {
    let arriving = 0
    let unacknowledged = 0
    let waiting = 0
    for (const end of this.ends) {
      arriving += end.outstanding
      unacknowledged += end.unacknowledged
      waiting += end.stats.sent - end.stats.delivered
    }
    return arriving === 0 && unacknowledged === waiting
  }
}

class SettledInterface extends ForwardingInterface {
  readonly #pair: Pair

  constructor(inner: VirtualInterface, pair: Pair, driver: string) {
    super(inner, driver, inner.capabilities)
    this.#pair = pair
  }

  override commit(length: number): void {
    super.commit(length)
    this.#pair.settle()
  }

  override poll(sink: FrameSink, limit: number): number {
    const wasBusy = this.#pair.isBusy
    this.#pair.isBusy = true
    try {
      return super.poll(sink, limit)
    } finally {
      this.#pair.isBusy = wasBusy
      this.#pair.settle()
    }
  }
}
