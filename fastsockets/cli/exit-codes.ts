/** Exit codes of the command line tool. */
import { constants } from 'node:os'

export const OK = 0
export const FAILURE = 1
export const USAGE_ERROR = 2
/** As in shells: the command was found, but could not be run. */
export const NOT_EXECUTABLE = 126
export const NOT_FOUND = 127

/** As in shells, for a program that a signal ended. */
export function exitCodeOfSignal(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal]
}
