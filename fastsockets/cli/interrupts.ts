/** Ctrl-C and similar signals, for commands that must clean up. */
import { exitCodeOfSignal, OK } from './exit-codes.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Exits normally, so that every `exit` listener cleans up. `isEndless`: the command has no other end, so Ctrl-C is not a
 * failure.
 */
export function exitOnInterrupt(isEndless = false): void {
  for (const signal of SIGNALS) {
    const code = isEndless && signal === 'SIGINT' ? OK : exitCodeOfSignal(signal)
    process.once(signal, () => process.exit(code))
  }
}
