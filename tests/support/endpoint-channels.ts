/** Channels of endpoints over a loopback pair, whose progress is made by hand. */
import { EndpointChannel } from '../../am/endpoint-channel.ts'
import { ChannelGroup, type Message, type UndeliverableReason } from '../../am/index.ts'
import type { Mapping, RemoteSegment } from '../../am/mapping.ts'
import type { PendingCall } from '../../am/request-log.ts'
import { Segment } from '../../am/segment.ts'
import { tagOf } from '../../am/tag.ts'
import { Words } from '../../am/words.ts'
import { type Capabilities, openLoopbackPair, type Status, type VirtualInterface } from '../../nic/index.ts'
import { OwnerLog, settle } from './channels.ts'

/** Bytes on either side of a guarded segment, and what is in them. */
const GUARD_SIZE = 4096
const GUARD = 0xee
const INTACT = Buffer.alloc(GUARD_SIZE, GUARD)

export interface EndpointSideOptions {
  readonly credits?: number
  readonly tag?: bigint
  /** Bytes of segment. */
  readonly segment?: number
  readonly mediumMax?: number
  readonly longMax?: number
}

/** One side of a conversation, with everything that `PeerTable.openChannel` gives to its channel. */
export class EndpointSide {
  readonly group = new ChannelGroup({ progress: 'manual' })
  readonly owner = new OwnerLog(0)
  readonly end: VirtualInterface
  readonly channel: EndpointChannel
  /** The segment, and guards around it. */
  readonly memory: Buffer
  readonly segment: Buffer

  constructor(end: VirtualInterface, options: EndpointSideOptions = {}) {
    const { credits = 8, tag = 0n, segment = 0, mediumMax = 64 * 1024, longMax = 2 ** 22 } = options
    this.end = end
    this.memory = Buffer.alloc(segment + 2 * GUARD_SIZE, GUARD)
    this.segment = this.memory.subarray(GUARD_SIZE, GUARD_SIZE + segment).fill(0)
    const guarded = Object.assign(new Segment(0), { bytes: this.segment })
    const channelOptions = {
      credits,
      owner: this.owner,
      tag: tagOf(tag),
      segment: guarded,
      mediumMax,
      longMax,
    }
    this.channel = this.group.add(new EndpointChannel(end, this.group.handlers, channelOptions))
  }

  /** Whether nothing was written beside the segment. */
  get isGuardWhole(): boolean {
    const behind = this.memory.subarray(this.memory.length - GUARD_SIZE)
    return this.memory.subarray(0, GUARD_SIZE).equals(INTACT) && behind.equals(INTACT)
  }

  send(handler: number, list: readonly number[] = [], payload?: Uint8Array, call?: PendingCall): Status {
    return this.channel.send(toPeer(), handler, wordsOf(list), payload, call)
  }

  sendLong(handler: number, payload: Uint8Array, offset: number, mapping = toPeer()): Status {
    return this.channel.sendLong(mapping, handler, wordsOf([]), payload, offset)
  }

  get(handler: number, offset: number, length: number, into: number, mapping = toPeer()): Status {
    return this.channel.get(mapping, handler, wordsOf([]), offset, length, into)
  }
}

export function openEndpointPair(
  options: EndpointSideOptions & { readonly ringSize?: number } = {},
): [a: EndpointSide, b: EndpointSide] {
  const [near, far] = openLoopbackPair(options.ringSize)
  return [new EndpointSide(near, options), new EndpointSide(far, options)]
}

/** A mapping of the peer, which has said that its segment is as large as can be. */
export function toPeer(tag = 0n, segment: Partial<RemoteSegment> = {}): Mapping {
  const remote = {
    length: 2 ** 32 - 1,
    longMax: 2 ** 32 - 1,
    isReadOnly: false,
    memory: undefined,
    ...segment,
  }
  const fields = { index: 0, name: 'the peer', tag: tagOf(tag), peer: undefined, segment: remote }
  // The channel of a mapping is for endpoints; channels do not look at it.
  return fields as unknown as Mapping
}

/** Lets an interface say of itself what it does not do. */
export function withoutOneSided(end: VirtualInterface): VirtualInterface {
  const capabilities: Capabilities = { ...end.capabilities, rdmaRead: false, rdmaWrite: false }
  return Object.defineProperty(end, 'capabilities', { value: capabilities })
}

export class CallLog implements PendingCall {
  readonly outcomes: string[] = []

  handleReply(): void {
    this.outcomes.push('reply')
  }

  handleReturn(reason: string): void {
    this.outcomes.push(reason)
  }

  handleNoReply(): void {
    this.outcomes.push('no reply')
  }

  handleClosed(): void {
    this.outcomes.push('closed')
  }
}

function wordsOf(list: readonly number[]): Words {
  const words = new Words()
  words.setArray(list)
  return words
}

export interface Returned {
  readonly reason: UndeliverableReason | undefined
  readonly handler: number
  readonly words: number[]
  readonly payload: Buffer
  readonly destination: number | undefined
  readonly isRequest: boolean
}

/** What comes back to handler 0 of that side. */
export function returnsOf(side: EndpointSide): Returned[] {
  const returned: Returned[] = []
  side.group.setHandler(0, (message: Message) => {
    const { reason, handler, destination, isRequest } = message
    const words = Array.from({ length: message.wordCount }, (_, i) => message.word(i))
    returned.push({ reason, handler, words, payload: message.copy(), destination, isRequest })
  })
  return returned
}

/** Polls both ends until neither has progressed. */
export function settleAll(a: EndpointSide, b: EndpointSide): void {
  for (let turn = 0; turn < 100; turn++) settle(a, b)
}
