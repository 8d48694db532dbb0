/** Common parts of both servers of `fastsockets perf`. */

/** A client that has sent no ASK after this time is disconnected. */
export const ASK_TIMEOUT_MS = 10_000
/** Clients at a time; more are disconnected. */
export const CALLERS_MAX = 256
/** Size of the raw server's receive buffer. */
export const RECEIVE_SIZE = 1024 * 1024

/** A server of `fastsockets perf`; serves until the process ends. */
export interface PerfServer {
  readonly port: number
}
