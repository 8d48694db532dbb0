/** The daemon's log: JSON lines on standard output. No path of the store, no token, no secret ever goes into it. */
import { createRequire } from 'node:module'
import type { Logger } from 'pino'
import { LogDestination } from './log-destination.ts'

export type DaemonLog = Logger

export function openLog(level: string): { log: DaemonLog; flush: () => Promise<void> } {
  // By require: to import it, Node would look through all of its text for what it exports.
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
