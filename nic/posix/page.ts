/**
 * A page of memory that other processes of the same user may read while this one lives: a memfd that stays open, found
 * under /proc/PID/fd. It has no name in any file system, so nothing is left of it after SIGKILL, and the kernel lets
 * nobody follow such a link who may not inspect the process.
 */
import { closeSync } from 'node:fs'
import { undisturbed } from '../threads/undisturbed.ts'
import { type Libc, loadLibc } from './libc.ts'
import { mapShared } from './mapping.ts'
import { createSealed, ownedByThread, sealForGood } from './sealed-memory.ts'

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
  const kept = ownedByThread(libc, createSealed(libc, name, length))
  try {
    sealForGood(libc, kept, true)
    return mapShared(libc, kept, length).memory
  } catch (error) {
    closeSync(kept)
    throw error
  }
}
