/**
 * Whether a relinked program has a first phase, in which its sockets are Node's own and nothing is loaded for them (light-phase.ts).
 *
 * Such a program has no status page: `status` finds it by a file of this package that it keeps open (status/light-thread.ts).
 *
 * Not for programs that say otherwise: by a policy, by a variable that stands for one, or by `FASTSOCKETS_START=fast`. Workers of
 * a cluster need their primary's help to be reached, and have it from the start.
 */
import { closeSync, fstatSync, openSync, statSync } from 'node:fs'
import { reasonAgainstFolder, rendezvousFolder } from '../../nic/rendezvous/folder.ts'
import { deviceNames } from '../../nic/verbs/kernel-devices.ts'
import { startPhase } from '../host/start-phase.ts'
import { findPolicyFile } from '../policy/find-policy.ts'
import { START_VARIABLE } from '../policy/start-variable.ts'

const DECIDED = [
  'FASTSOCKETS_USE',
  'FASTSOCKETS_USERS',
  'FASTSOCKETS_DRIVERS',
  'FASTSOCKETS_ABLATE',
  'NODE_UNIQUE_ID',
]
/** The path of this part. */
const MARK = import.meta.url
let mark: number | undefined

/** Begins the phase, if this program may have one. */
export function startLight(): boolean {
  const { env } = process
  if ((env[START_VARIABLE] && env[START_VARIABLE] !== 'tcp') || DECIDED.some(name => env[name])) return false
  if (env.DEBUG?.includes('fastsockets') || findPolicyFile() !== undefined) return false
  // Connections to other hosts may be fast from their first byte.
  if (deviceNames().length > 0) return false
  startPhase.wasLight = true
  startPhase.folder = rendezvousFolder()
  startPhase.hasFolder = reasonAgainstFolder(false) === undefined
  leaveMark()
  return true
}

/** For any program that has no status page yet. */
export function leaveMark(): void {
  try {
    mark = openSync(MARK, 'r')
  } catch {
    // Without a free descriptor, or the right to read, the program works all the same.
  }
}

/** The phase is over. The program may have closed the descriptor, and have another file under its number. */
export function removeMark(): void {
  try {
    if (mark !== undefined && fstatSync(mark).ino === statSync(MARK).ino) closeSync(mark)
  } catch {}
  mark = undefined
}
