import type { AmError } from './errors.ts'

/** The layer above, as far as a channel knows it. All of it may run user code. */
export interface ChannelOwner {
  /** The peer's name: a message's `source`. */
  readonly peerName: string
  /** Where this side has mapped the peer: a message's `destination`. */
  readonly destination: number | undefined
  /** Called after every poll, even an empty one: resumes refused sends. */
  handleProgress(): void
  /** Bytes of payload that wait for room in the send queue; 0 if nothing waits. */
  roomWanted(): number
  /** The peer broke the protocol. The channel is closed already. */
  handleBroken(error: AmError): void
}
