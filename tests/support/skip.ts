import type { Test } from 'tap'

/** The test that calls this is skipped, by its name and with this reason. It has asserted nothing, and returns now. */
export function skipHere(t: Test, reason: string): void {
  t.plan(0, reason)
}
