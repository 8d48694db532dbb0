/** Settings of a suite for the halves of a contestant, passed by environment variables; unset means the default. */
export const CREDITS_VARIABLE = 'FASTSOCKETS_BENCH_CREDITS'
export const NO_DELAY_VARIABLE = 'FASTSOCKETS_BENCH_NO_DELAY'

/** The address at which servers of `node:net` listen. */
export const HOST_VARIABLE = 'FASTSOCKETS_BENCH_HOST'

/** The wire that relinked clients must have. */
export const WIRE_VARIABLE = 'FASTSOCKETS_BENCH_WIRE'

/**
 * For suites in which many processes or threads start, or share a core. The time of their handshakes is not measured.
 */
export const PATIENCE = { FASTSOCKETS_GREETING_TIMEOUT_MS: '2000' }

/** By default warm programs are measured: they start fast, and each connection proves its wire. */
export const FAST_FROM_THE_START = { FASTSOCKETS_START: 'fast' }
/** Cold programs start as those of users do: on TCP. */
export const AS_USERS_START = { FASTSOCKETS_START: 'tcp' }

/** Whether connections of relinked programs are fast from their first byte. */
export function startsFast(): boolean {
  return process.env.FASTSOCKETS_START === 'fast'
}

/** Of endpoints of active messages. */
export function creditsSetting(): { credits?: number } {
  const credits = process.env[CREDITS_VARIABLE]
  return credits === undefined ? {} : { credits: Number(credits) }
}

/** Whether streams of `node:net` say `setNoDelay(true)`. */
export function noDelaySetting(): boolean {
  return process.env[NO_DELAY_VARIABLE] !== undefined
}

export function hostSetting(): string {
  return process.env[HOST_VARIABLE] ?? '127.0.0.1'
}

export function wireSetting(): string {
  return process.env[WIRE_VARIABLE] ?? 'shm'
}
