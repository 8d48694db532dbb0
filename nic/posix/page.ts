/**
 * A page of memory that other processes of the same user may read while this one lives: a memfd that stays open, found
 * under /proc/PID/fd. It has no name in any file system, so nothing is left of it after SIGKILL, and the kernel lets
 * nobody follow such a link who may not inspect the process.
 */
import { closeSync, fchmodSync, openSync } from 'node:fs'
import { undisturbed } from '../threads/undisturbed.ts'
import {
  F_ADD_SEALS,
  F_SEAL_GROW,
  F_SEAL_SEAL,
  F_SEAL_SHRINK,
  MFD_ALLOW_SEALING,
  MFD_CLOEXEC,
} from './constants.ts'
import { type Libc, loadLibc, systemError } from './libc.ts'
import { mapShared } from './mapping.ts'

const OWNER_ONLY = 0o600
/** Who could make it shorter could kill us with SIGBUS. */
const SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL

/** What /proc/PID/fd shows of the page called `name`. */
export function pageLink(name: string): string {
  return `/memfd:${name} (deleted)`
}

/** Zeros, of `length` bytes, for as long as this thread lives; undefined if this system has no such thing. */
export function openPage(name: string, length: number): ArrayBuffer | undefined {
  const { libc } = loadLibc()
  if (libc === undefined) return undefined
  try {
    return undisturbed(() => makePage(libc, name, length))
  } catch {
    return undefined
  }
}

function makePage(libc: Libc, name: string, length: number): ArrayBuffer {
  const fd = libc.memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING)
  if (fd < 0) throw systemError(libc, 'memfd_create')
  try {
    if (libc.ftruncate(fd, length) < 0) throw systemError(libc, 'ftruncate')
    if (libc.fcntl(fd, F_ADD_SEALS, SEALS) < 0) throw systemError(libc, 'fcntl')
    // A descriptor of Node's own, which goes with the thread: a worker may be terminated without a word.
    const kept = openSync(`/proc/self/fd/${fd}`, 'r+')
    try {
      fchmodSync(kept, OWNER_ONLY)
      return mapShared(libc, kept, length).memory
    } catch (error) {
      closeSync(kept)
      throw error
    }
  } finally {
    libc.close(fd)
  }
}
