import type { AmError } from './errors.ts'

/** The layer above, as far as a channel knows it. All of it may run user code. */
export interface ChannelOwner {
  /** Who the peer is: a message's `source`. */
  readonly peerName: string
  /** Where this side has mapped the peer: a message's `destination`. */
  readonly destination: number | undefined
  /** After every poll, whether or not something came: re-drive what was refused. */
  handleProgress(): void
  /** Bytes of payload that wait for room in the send queue; 0 if nothing waits. */
  roomWanted(): number
  /** The peer broke the protocol. The channel is closed already. */
  handleBroken(error: AmError): void
}
