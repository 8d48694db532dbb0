/** Ctrl-C and its like, for commands that have something to clean up. */
import { exitCodeOfSignal } from './exit-codes.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Exits in the ordinary way, so that everything that cleans up at `exit` does so. */
export function exitOnInterrupt(): void {
  for (const signal of SIGNALS) process.once(signal, () => process.exit(exitCodeOfSignal(signal)))
}
