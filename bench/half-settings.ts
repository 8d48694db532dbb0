/** What a suite may set for the halves of a contestant, by their environment; unset they are as they ship. */
export const CREDITS_VARIABLE = 'FASTSOCKETS_BENCH_CREDITS'
export const NO_DELAY_VARIABLE = 'FASTSOCKETS_BENCH_NO_DELAY'

/** Of endpoints of active messages. */
export function creditsSetting(): { credits?: number } {
  const credits = process.env[CREDITS_VARIABLE]
  return credits === undefined ? {} : { credits: Number(credits) }
}

/** Whether streams of `node:net` say `setNoDelay(true)`. */
export function noDelaySetting(): boolean {
  return process.env[NO_DELAY_VARIABLE] !== undefined
}
