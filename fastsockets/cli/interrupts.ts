/** Ctrl-C and its like, for commands that have something to clean up. */
import { exitCodeOfSignal, OK } from './exit-codes.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Exits in the ordinary way, so that everything that cleans up at `exit` does so. `isEndless`: the command has no other end,
 * so that Ctrl-C is none of its failures.
 */
export function exitOnInterrupt(isEndless = false): void {
  for (const signal of SIGNALS) {
    const code = isEndless && signal === 'SIGINT' ? OK : exitCodeOfSignal(signal)
    process.once(signal, () => process.exit(code))
  }
}
