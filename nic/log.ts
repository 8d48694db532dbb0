/**
 * Debug logs through the package `debug`. The package is loaded only if `DEBUG` is set: loading takes time at each
 * start, and opens `process.stderr`, which the program may have closed.
 */
import { createRequire } from 'node:module'
import { shownText } from './shown-text.ts'

export type Log = (format: string, ...values: readonly unknown[]) => void

/** A log that prints if `DEBUG` matches `name`. `DEBUG` may be set before the first line. Strings are escaped. */
export function openLog(name: string): Log {
  let log: Log | undefined
  return (format, ...values) => {
    if (!process.env.DEBUG) return
    log ??= (createRequire(import.meta.url)('debug') as (name: string) => Log)(name)
    log(format, ...values.map(value => (typeof value === 'string' ? shownText(value) : value)))
  }
}
