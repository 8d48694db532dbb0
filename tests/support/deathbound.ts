/**
 * What a test starts ends with it, also when the test's process is killed, or leaves by tap's time limit without its teardown: the
 * kernel sends the program a signal then (prctl(2), PR_SET_PDEATHSIG), which setpriv(1) asks for before it becomes the program.
 */
import { spawnSync } from 'node:child_process'

const hasSetpriv = spawnSync('setpriv', ['--version']).status === 0

/** The words that start `command` so, or the words themselves where there is no setpriv. */
export function deathbound(signal: 'KILL' | 'INT', command: readonly string[]): [string, ...string[]] {
  const words = hasSetpriv ? ['setpriv', '--pdeathsig', signal, ...command] : command
  return words as [string, ...string[]]
}
