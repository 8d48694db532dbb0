/**
 * Logs by the package `debug`, which is loaded when there is somebody to read them: loading it makes `process.stderr`, which a
 * program may have closed, and takes time at each start.
 */
import { createRequire } from 'node:module'
import { shownText } from './shown-text.ts'

export type Log = (format: string, ...values: readonly unknown[]) => void

/** What `DEBUG` names is printed, also if the program sets it later. Text of strangers is escaped. */
export function openLog(name: string): Log {
  let log: Log | undefined
  return (format, ...values) => {
    if (!process.env.DEBUG) return
    log ??= (createRequire(import.meta.url)('debug') as (name: string) => Log)(name)
    log(format, ...values.map(value => (typeof value === 'string' ? shownText(value) : value)))
  }
}
