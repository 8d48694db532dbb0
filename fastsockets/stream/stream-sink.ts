export type StreamErrorCode = 'ECONNRESET' | 'ETIMEDOUT' | 'EPIPE' | 'EFAULT'

/** The owner of a stream. Every method may run user code. */
export interface StreamSink {
  /** A receive is posted: data may be handed over. */
  readonly isReading: boolean
  /** Of what was handed over something is on its way to a listener that reads: no error may overtake it. */
  readonly isFeeding?: boolean
  /** What it is given is copied by native code: pieces may share their memory. */
  readonly isNative?: boolean
  /** It keeps nothing of what it is given: bytes are valid only during the call. */
  readonly copies?: boolean
  /** The bytes are the sink's to keep, unless it copies. Returns how many it took: fewer than all only if it stopped reading. */
  handleData(bytes: Buffer): number
  handleEnd(): void
  /** The last write is out; only after a write that was not out at once. */
  handleWritten(): void
  /** A part of the last write is out. */
  handleSent(): void
  /** FIN is out; only after a shutdown that was not out at once. */
  handleShutdown(): void
  handleError(code: StreamErrorCode, syscall: 'read' | 'write', cause: Error | undefined): void
  /** The peer has accepted; `handleConnected` follows if that was not presumed before. */
  handleAnswered?(): void
  handleConnected(): void
  /** Also if it was presumed to be connected. A refusal's wire number; undefined if the peer died meanwhile. */
  handleRefused(refusal: number | undefined): void
  /**
   * Raw sockets only; no user code may run in these. Takes bytes out of the ring into posted buffers, and returns how
   * many found a place there. `bytes` is valid only during the call.
   */
  place?(bytes: Uint8Array, offset: number, length: number): number
  /** Raw sockets only: where the next bytes go, `lengthMax` at most. Asked only while the sink reads. */
  posted?(lengthMax: number): Uint8Array | undefined
  /** `length` bytes have been put there. */
  handlePosted?(length: number): void
  /** Something may be there to read, or has been placed: at the end of a turn, and when a message found no place. */
  handleArrival?(): void
  /** What is being written will not go out, though there may be something left to read. */
  handleWriteFailed?(code: StreamErrorCode): void
}
