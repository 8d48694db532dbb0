/** The daemon's log: JSON lines on standard output. It never contains a path of the store, a token or a secret. */
import { createRequire } from 'node:module'
import type { Logger } from 'pino'
import { LogDestination } from './log-destination.ts'

export type DaemonLog = Logger

export function openLog(level: string): { log: DaemonLog; flush: () => Promise<void> } {
  // By require: for an import, Node would scan the whole file for its exports.
  const { pino } = createRequire(import.meta.url)('pino') as typeof import('pino')
  const destination = new LogDestination()
  const log = pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
    },
    destination,
  )
  return { log, flush: () => destination.flush() }
}
