/** What a stream needs below it: an outlet for its messages, and its process. */

/** Builds and sends messages: a channel of active messages. */
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

/** Counts the bytes that this process keeps for the streams of one peer. */
export interface UnreadCount {
  /** Counts bytes that are kept; negative if fewer. */
  noteKept(length: number): void
  /** True if the process, or this peer's streams, keep more than their budget: windows shrink. */
  isOverBudget(): boolean
}

/** What a stream needs of its process. */
export interface StreamHost {
  /** Allocates memory for received bytes. */
  allocate(length: number): Buffer
  /** How often the event loop has looked for I/O; NaN if that is not known. */
  lookCount(): number
  /** Runs ticks and microtasks, as Node does between two callbacks of libuv. */
  drainTicks(): void
  /** True if reads after a reset, and after all data before it, report the reset. */
  readonly reportsLateResets: boolean
}
