/** The daemon's log: JSON lines on standard output. No path of the store, no token, no secret ever goes into it. */
import pino, { type Logger } from 'pino'
import { LogDestination } from './log-destination.ts'

export type DaemonLog = Logger

export function openLog(level: string): { log: DaemonLog; flush: () => Promise<void> } {
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
