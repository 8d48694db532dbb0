/** The bootstrap connection, as far as a channel of sockets needs it. */
export interface Lifeline {
  /** `isReset`: the sockets did not come to their end. */
  end(isReset: boolean): void
  /** Looks, without the event loop, whether the peer is gone. */
  hearNow(): void
  /** Whether it keeps the event loop alive. */
  ref(): void
  unref(): void
}
