/**
 * The verbs driver between two ends of this process, as if the network had no delay: frames that one end has sent
 * arrive within the call. The conformance suite expects a committed frame to be there.
 */
import {
  type Driver,
  drivers,
  ForwardingInterface,
  type FrameSink,
  type Registration,
  type RemoteMemory,
  type Status,
  type VirtualInterface,
} from '../../nic/index.ts'
import type { VerbsInterface } from '../../nic/verbs/verbs-interface.ts'

const SETTLE_MS_MAX = 20_000

export function settledVerbs(): Driver {
  const verbs = drivers.get('verbs') as Driver
  const pairs = new Map<string, SettledInterface[]>()
  const wrap = (end: VirtualInterface, blob: Uint8Array): VirtualInterface => {
    const key = Buffer.from(blob).toString('hex')
    const pair = pairs.get(key) ?? []
    pairs.set(key, pair)
    const settled = new SettledInterface(end as VerbsInterface, pair)
    pair.push(settled)
    return settled
  }
  return {
    ...verbs,
    offer(options) {
      const offer = verbs.offer(options)
      const accepted = offer.accepted.then(end => wrap(end, offer.blob))
      accepted.catch(() => {})
      return { ...offer, accepted }
    },
    connect: async (blob, options) => wrap(await verbs.connect(blob, options), blob),
  }
}

class SettledInterface extends ForwardingInterface {
  readonly verbs: VerbsInterface
  readonly #pair: readonly SettledInterface[]

  constructor(verbs: VerbsInterface, pair: readonly SettledInterface[]) {
    super(verbs, 'verbs', verbs.capabilities)
    this.verbs = verbs
    this.#pair = pair
  }

  override commit(length: number): void {
    super.commit(length)
    this.#settle()
  }

  override poll(sink: FrameSink, limit: number): number {
    try {
      return super.poll(sink, limit)
    } finally {
      this.#settle()
    }
  }

  override arm(forRoom: number): boolean {
    const isArmed = super.arm(forRoom)
    this.#settle()
    return isArmed
  }

  override rdmaRead(
    local: Registration,
    localOffset: number,
    remote: RemoteMemory,
    remoteOffset: number,
    length: number,
    workId: number,
  ): Status {
    const status = super.rdmaRead(local, localOffset, remote, remoteOffset, length, workId)
    this.#settle()
    return status
  }

  override rdmaWrite(
    local: Registration,
    localOffset: number,
    remote: RemoteMemory,
    remoteOffset: number,
    length: number,
    workId: number,
  ): Status {
    const status = super.rdmaWrite(local, localOffset, remote, remoteOffset, length, workId)
    this.#settle()
    return status
  }

  /** Until each end has got what the other has sent. An end that is closed gets nothing. */
  #settle(): void {
    const [one, other] = this.#pair
    if (one === undefined || other === undefined) return
    const deadlineMs = performance.now() + SETTLE_MS_MAX
    while (one.state === 'open' && other.state === 'open' && !isSettled(one.verbs, other.verbs)) {
      if (performance.now() > deadlineMs) {
        const progress = JSON.stringify([one.verbs.progress(), other.verbs.progress()])
        throw new Error(`watchdog: the connection does not settle: ${progress}`)
      }
    }
  }
}

function isSettled(one: VerbsInterface, other: VerbsInterface): boolean {
  const here = one.progress()
  const there = other.progress()
  return (
    here.sent === there.arrived &&
    there.sent === here.arrived &&
    here.reported === there.acknowledged &&
    there.reported === here.acknowledged &&
    here.underWay + there.underWay === 0
  )
}
