import type { RemoteMemory } from '../nic/index.ts'
import type { Tag } from './tag.ts'

/** A peer's segment, as the peer describes it in answer to its tag. */
export interface RemoteSegment {
  readonly length: number
  /** Largest long message that the peer accepts. */
  readonly longMax: number
  /** Long messages to it come back. */
  readonly isReadOnly: boolean
  /** For one-sided access; undefined if the driver has none. */
  readonly memory: RemoteMemory | undefined
}

/** Index of a mapping that is in no translation table. */
export const NO_DESTINATION = -1

/** One entry of the translation table, as messages need it: its index, and the tag to show. */
export interface Mapping {
  readonly index: number
  readonly name: string
  readonly tag: Tag
  /** Undefined if the peer has refused the tag. */
  readonly segment: RemoteSegment | undefined
}
