/** What both servers of `fastsockets perf` have in common. */

/** A client without an ASK by then is disconnected. */
export const ASK_TIMEOUT_MS = 10_000
/** Clients at a time; more are disconnected. */
export const CALLERS_MAX = 256
/** What a raw server receives at once. */
export const RECEIVE_SIZE = 1024 * 1024

/** It serves until the process ends. */
export interface PerfServer {
  readonly port: number
}
