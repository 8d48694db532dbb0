/** What a stream needs below it: a place for its messages, and its process. */

/** Where messages are built and sent: a channel of active messages. */
export interface MessageOut {
  readonly sendBytes: Uint8Array
  /** Largest payload of a message. */
  readonly mediumMax: number
  /** Reserves a message of two to four words; returns where its payload goes in `sendBytes`, or a negative status. */
  reserveOneWay(
    handler: number,
    wordCount: number,
    a: number,
    b: number,
    c: number,
    d: number,
    payloadLength: number,
  ): number
  commitOneWay(payloadLength: number): void
}

/** What counts the bytes that this process keeps for the streams of one peer. */
export interface UnreadCount {
  /** So many bytes more are kept, or less if negative. */
  noteKept(length: number): void
  /** The process, or this peer's streams, keep more than they may: windows shrink. */
  isOverBudget(): boolean
}

/** What a stream needs of its process. */
export interface StreamHost {
  /** Memory of its own for received bytes. */
  allocate(length: number): Buffer
  /** How often the event loop has looked for I/O; NaN if that is not known. */
  lookCount(): number
  /** Runs what the program's callbacks have left to do, as Node does between two callbacks of libuv. */
  drainTicks(): void
  /** Reads that come after a reset, and after all data before it, report the reset. */
  readonly reportsLateResets: boolean
}
