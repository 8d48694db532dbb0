/** What both servers of `fastsockets perf` have in common. */

/** A client that has not said by then what it wants is hung up on. */
export const ASK_TIMEOUT_MS = 10_000
/** Clients at a time; more are hung up on. */
export const CALLERS_MAX = 256
/** What a raw server receives at once. */
export const RECEIVE_SIZE = 1024 * 1024

/** It serves until the process ends. */
export interface PerfServer {
  readonly port: number
}
