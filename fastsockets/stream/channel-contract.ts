/** What a channel of sockets needs of those around it. */
import type { Family } from '../host/unix-paths.ts'
import type { Stream } from './stream.ts'

export interface Accepted {
  readonly clientPort: number
  readonly begin: () => void
}

/**
 * Who decides about a peer's CONNECT; returns the new stream's acceptance, or a refusal's number. `promisedPort`: what the
 * client's port must be then, unless it is 0.
 */
export type Acceptor = (
  stream: Stream,
  port: number,
  address: string,
  family: Family,
  promisedPort: number,
) => number | Accepted

/** The bootstrap connection, as far as a channel needs it. */
export interface Lifeline {
  /** `isReset`: the sockets did not come to their end. */
  end(isReset: boolean): void
  /** Looks, without the event loop, whether the peer is gone. */
  hearNow(): void
  /** Whether it keeps the event loop alive. */
  ref(): void
  unref(): void
}
