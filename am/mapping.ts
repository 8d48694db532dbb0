import type { RemoteMemory } from '../nic/index.ts'
import type { EndpointChannel } from './endpoint-channel.ts'
import type { Peer } from './peer.ts'
import type { Tag } from './tag.ts'

/** What the peer has said about its segment to one who showed its tag. */
export interface RemoteSegment {
  readonly length: number
  /** Largest long message that the peer takes. */
  readonly longMax: number
  /** No long messages may be put there. */
  readonly isReadOnly: boolean
  /** For one-sided access; undefined if the driver has none. */
  readonly memory: RemoteMemory | undefined
}

/** One entry of the translation table: a small index stands for an endpoint and the tag to show it. */
export interface Mapping {
  readonly index: number
  readonly name: string
  readonly tag: Tag
  /** Undefined if nobody answered to the name. */
  readonly peer: Peer | undefined
  readonly channel: EndpointChannel
  /** Undefined if the peer has refused the tag. */
  readonly segment: RemoteSegment | undefined
}
