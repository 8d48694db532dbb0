export type StreamErrorCode = 'ECONNRESET' | 'ETIMEDOUT' | 'EPIPE' | 'EFAULT'

/** The owner of a stream. Every method may run user code. */
export interface StreamSink {
  /** The program reads: data may be delivered. */
  readonly isReading: boolean
  /** Delivered data is on its way to a listener that reads: no error may overtake it. */
  readonly isFeeding?: boolean
  /** Of a promotion: TCP has carried the peer's direction to its end, and the program knows. A reset that follows is no news to a reader. */
  readonly hasEnded?: boolean
  /** Native code copies what is delivered: pieces may share memory. */
  readonly isNative?: boolean
  /** The sink keeps no bytes: they are valid only during the call. */
  readonly copies?: boolean
  /**
   * The sink owns the bytes, unless it copies. Returns how many it consumed: fewer than all only if it stopped reading.
   */
  handleData(bytes: Buffer): number
  handleEnd(): void
  /** The last write is completed; only after a write that was not completed at once. */
  handleWritten(): void
  /** A part of the last write was sent. */
  handleSent(): void
  /** FIN was sent; only after a shutdown that was not completed at once. */
  handleShutdown(): void
  handleError(code: StreamErrorCode, syscall: 'read' | 'write', cause: Error | undefined): void
  /** The peer has accepted; `handleConnected` follows unless the connection was presumed. */
  handleAnswered?(): void
  handleConnected(): void
  /** Also for a presumed connection. The number of the refusal; undefined if the peer died. */
  handleRefused(refusal: number | undefined): void
  /**
   * Raw sockets only; no user code may run in these. Copies bytes from the ring to posted buffers; returns how many
   * found a place there. `bytes` is valid only during the call.
   */
  place?(bytes: Uint8Array, offset: number, length: number): number
  /** Raw sockets only: the buffer for the next bytes, at most `lengthMax` long. Called only while the sink reads. */
  posted?(lengthMax: number): Uint8Array | undefined
  /** `length` bytes were written to that buffer. */
  handlePosted?(length: number): void
  /** Datagrams only: the ring may have room; false if it has too little. */
  handleRoom?(): boolean
  /** There may be data to read, or it was placed: at the end of a turn, and when a message found no place. */
  handleArrival?(): void
  /** The pending write failed, though there may be data left to read. */
  handleWriteFailed?(code: StreamErrorCode): void
}
