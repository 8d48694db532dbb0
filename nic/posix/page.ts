/**
 * A page of memory that other processes of the same user may read while this process lives: an open memfd, found
 * under /proc/PID/fd. It has no name in a file system, so SIGKILL leaves nothing behind. The kernel allows only
 * processes that may inspect this one (ptrace(2), access mode) to follow the link.
 */
import { closeSync } from 'node:fs'
import { undisturbed } from '../threads/undisturbed.ts'
import { hasFreeDescriptors } from './free-descriptors.ts'
import { type Libc, loadLibc } from './libc.ts'
import { mapShared } from './mapping.ts'
import { createSealed, ownedByThread, sealForGood } from './sealed-memory.ts'

/** The link text in /proc/PID/fd of the page called `name`. */
export function pageLink(name: string): string {
  return `/memfd:${name} (deleted)`
}

/** A page of `length` zeros that lives as long as this thread; undefined if the system refuses it. */
export function openPage(name: string, length: number): ArrayBuffer | undefined {
  const { libc } = loadLibc()
  if (libc === undefined || !hasFreeDescriptors()) return undefined
  try {
    return undisturbed(() => makePage(libc, name, length))
  } catch {
    return undefined
  }
}

function makePage(libc: Libc, name: string, length: number): ArrayBuffer {
  const kept = ownedByThread(libc, createSealed(libc, name, length))
  try {
    sealForGood(libc, kept, true)
    return mapShared(libc, kept, length).memory
  } catch (error) {
    closeSync(kept)
    throw error
  }
}
