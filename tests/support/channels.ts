/** Two channels over a loopback pair whose progress is made by hand. */
import { type AmError, type Channel, ChannelGroup, type ChannelOwner } from '../../am/index.ts'
import { openLoopbackPair, type Status, type VirtualInterface } from '../../nic/index.ts'
import { RING_SIZE_MIN } from '../../nic/ring/ring-layout.ts'

/** Keeps the calls of the channel to its owner. */
export class OwnerLog implements ChannelOwner {
  readonly peerName = 'the peer'
  readonly destination: number | undefined
  readonly errors: AmError[] = []
  progressCount = 0
  wanted = 0

  constructor(destination?: number) {
    this.destination = destination
  }

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
  readonly group: ChannelGroup
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
  const group = new ChannelGroup({ progress: 'manual' })
  const owner = new OwnerLog()
  return { group, owner, end, channel: group.attach(end, { credits, owner }) }
}

/** A request with copies of `words` and `payload`, or its refusal. */
export function sendRequest(
  channel: Channel,
  handler: number,
  words: readonly number[] = [],
  payload: Buffer = Buffer.alloc(0),
): Status {
  const at = channel.reserveRequest(handler, words.length, payload.length)
  if (at < 0) return at as Status
  words.forEach((word, i) => {
    channel.putWord(i, word)
  })
  payload.copy(channel.sendBytes, at)
  channel.commit(payload.length)
  return 0
}

/** Both sides make progress until neither has anything to do. */
export function settle(a: { readonly group: ChannelGroup }, b: { readonly group: ChannelGroup }): void {
  while (a.group.poll() + b.group.poll() > 0) {}
}
