/** What a driver over libibverbs has done in this process, for tests and diagnosis. */
export interface VerbsCounters {
  /** Requests handed to a send queue: frames, returned credits, one-sided operations. */
  postSends: number
  /** Calls that posted receives, each a bundle of them. */
  postReceives: number
  /** Polls of the completion queue that found completions, and those that did not. */
  polls: number
  emptyPolls: number
  completions: number
  /** Requests for a wake-up, and wake-ups. */
  notifications: number
  events: number
  /** Registrations with the device and their ends; slabs of connections included. */
  registrations: number
  deregistrations: number
  /** Results of look-ups in the registration cache: hit, extension, miss; and evictions. */
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
