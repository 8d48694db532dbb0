/** Two channels over a loopback pair whose progress is made by hand. */
import { type AmError, type Channel, type ChannelOwner, Endpoint } from '../../am/index.ts'
import { openLoopbackPair, type VirtualInterface } from '../../nic/index.ts'
import { RING_SIZE_MIN } from '../../nic/ring/ring-layout.ts'

/** Keeps what the channel tells its owner. */
export class OwnerLog implements ChannelOwner {
  readonly errors: AmError[] = []
  progressCount = 0
  wanted = 0

  handleProgress(): void {
    this.progressCount++
  }

  roomWanted(): number {
    return this.wanted
  }

  handleBroken(error: AmError): void {
    this.errors.push(error)
  }
}

export interface Side {
  readonly endpoint: Endpoint
  readonly channel: Channel
  readonly end: VirtualInterface
  readonly owner: OwnerLog
}

export interface ChannelPairOptions {
  readonly credits?: number
  readonly ringSize?: number
}

export function openChannelPair(options: ChannelPairOptions = {}): [a: Side, b: Side] {
  const [near, far] = openLoopbackPair(options.ringSize ?? RING_SIZE_MIN)
  return [openSide(near, options.credits), openSide(far, options.credits)]
}

export function openSide(end: VirtualInterface, credits = 64): Side {
  const endpoint = new Endpoint({ progress: 'manual' })
  const owner = new OwnerLog()
  return { endpoint, owner, end, channel: endpoint.attach(end, { credits, owner }) }
}

/** Both sides make progress until neither has anything to do. */
export function settle(a: Side, b: Side): void {
  while (a.endpoint.poll() + b.endpoint.poll() > 0) {}
}
