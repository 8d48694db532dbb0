/** What a driver over libibverbs has done in this process, for tests and for people who wonder. */
export interface VerbsCounters {
  /** Requests handed to a send queue: frames, returned credits, one-sided operations. */
  postSends: number
  /** Calls that posted receives, each a bundle of them. */
  postReceives: number
  /** Looks at the completion queue that found something, and those that did not. */
  polls: number
  emptyPolls: number
  completions: number
  /** Requests for a wake-up, and wake-ups. */
  notifications: number
  events: number
  /** Memory made known to the device and forgotten again; slabs of connections included. */
  registrations: number
  deregistrations: number
  /** What registrations found in the cache: known, known but too small, unknown; and what had to make room. */
  cacheHits: number
  cacheExtensions: number
  cacheMisses: number
  cacheEvictions: number
}

export function newCounters(): VerbsCounters {
  return {
    postSends: 0,
    postReceives: 0,
    polls: 0,
    emptyPolls: 0,
    completions: 0,
    notifications: 0,
    events: 0,
    registrations: 0,
    deregistrations: 0,
    cacheHits: 0,
    cacheExtensions: 0,
    cacheMisses: 0,
    cacheEvictions: 0,
  }
}
