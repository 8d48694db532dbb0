/** Every error of the client, by its stable code. */
import type { Problem } from '../problem.ts'

export type NameErrorCode =
  /** The daemon does not run, or did not answer in time. */
  | 'ERR_NAMES_UNAVAILABLE'
  /** The daemon has refused; `problem` says why. */
  | 'ERR_NAMES_REFUSED'
  /** The answer is not the daemon's, or of another version. */
  | 'ERR_NAMES_PROTOCOL'
  /** The client was closed. */
  | 'ERR_NAMES_CLOSED'
  /** An argument that no daemon would accept. */
  | 'ERR_NAMES_ARGUMENT'

export class NameError extends Error {
  readonly code: NameErrorCode
  readonly problem: Problem | undefined

  constructor(code: NameErrorCode, message: string, details: { problem?: Problem; cause?: unknown } = {}) {
    super(message, 'cause' in details ? { cause: details.cause } : {})
    this.name = 'NameError'
    this.code = code
    this.problem = details.problem
  }
}

/** A kept connection turned out to have ended. */
export class EndedError extends NameError {}

/** A kept connection may have ended just when it was used again. */
const ENDED: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE'])

/** `isReused`: the connection has carried an answer before. */
export function unavailable(cause: Error & { code?: string }, isReused = false): NameError {
  const message = `the name service is not available: ${cause.code ?? cause.message}`
  const isEnded = isReused && ENDED.has(cause.code ?? '')
  return new (isEnded ? EndedError : NameError)('ERR_NAMES_UNAVAILABLE', message, { cause })
}

/** True if a later try may succeed. */
export function isPassing(error: unknown): boolean {
  if (!(error instanceof NameError)) return false
  if (error.code === 'ERR_NAMES_UNAVAILABLE' || error.code === 'ERR_NAMES_PROTOCOL') return true
  const status = error.problem?.status ?? 0
  return status >= 500 || status === 429 || status === 408
}
