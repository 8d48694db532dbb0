/** Failures between `fastsockets perf` and its server. */
import type { HostPort } from '../host-port.ts'

export const PERF_ERRORS = {
  ERR_PERF_REFUSED: 'no server listens at',
  ERR_PERF_UNREACHABLE: 'there is no way to',
  ERR_PERF_STRANGER: 'no `fastsockets perf server` of this version listens at',
  ERR_PERF_LOST: 'the connection was lost to',
  ERR_PERF_NO_POLL: 'no server that can poll listens at',
} as const

export type PerfErrorCode = keyof typeof PERF_ERRORS

const ADVICE: Partial<Record<PerfErrorCode, string>> = {
  ERR_PERF_UNREACHABLE: 'what does the system say?',
  ERR_PERF_LOST: 'does the server still run?',
  ERR_PERF_NO_POLL: 'leave out --poll, or start one of raw sockets there',
}

/** The error for a connect that has failed. */
export function perfConnectError(target: HostPort, cause: unknown): PerfError {
  const isRefused = (cause as NodeJS.ErrnoException).code === 'ECONNREFUSED'
  return new PerfError(isRefused ? 'ERR_PERF_REFUSED' : 'ERR_PERF_UNREACHABLE', target, cause)
}

export class PerfError extends Error {
  readonly code: PerfErrorCode

  constructor(code: PerfErrorCode, { host, port }: HostPort, cause?: unknown) {
    const place = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
    const detail =
      cause instanceof Error ? ` (${cause.message || (cause as NodeJS.ErrnoException).code})` : ''
    const advice = ADVICE[code] ?? `start one there: fastsockets perf server ${place}`
    super(`${PERF_ERRORS[code]} ${place}${detail}; ${advice}`, cause === undefined ? undefined : { cause })
    this.code = code
  }
}
