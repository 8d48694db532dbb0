/** What a suite may set for the halves of a contestant, by their environment; unset they are as they ship. */
export const CREDITS_VARIABLE = 'FASTSOCKETS_BENCH_CREDITS'
export const NO_DELAY_VARIABLE = 'FASTSOCKETS_BENCH_NO_DELAY'

/** For suites in which many processes or threads start, or share a core: how fast they find each other is not measured there. */
export const PATIENCE = { FASTSOCKETS_GREETING_TIMEOUT_MS: '2000' }

/** Of endpoints of active messages. */
export function creditsSetting(): { credits?: number } {
  const credits = process.env[CREDITS_VARIABLE]
  return credits === undefined ? {} : { credits: Number(credits) }
}

/** Whether streams of `node:net` say `setNoDelay(true)`. */
export function noDelaySetting(): boolean {
  return process.env[NO_DELAY_VARIABLE] !== undefined
}
