/** The lifeline, as a channel of sockets uses it. */
export interface Lifeline {
  /** `isReset`: the sockets were cut off. */
  end(isReset: boolean): void
  /** Checks, without the event loop, whether the peer is gone. */
  checkNow(): void
  /** Whether the lifeline keeps the event loop alive. */
  ref(): void
  unref(): void
}
