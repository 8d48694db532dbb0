/** Settings of the C library for a busy process. Without a C library these do nothing. */
import { loadLibc } from './libc.ts'

// mallopt(3), glibc.
const M_TRIM_THRESHOLD = -1
const M_MMAP_THRESHOLD = -3
/** Bytes of free memory at the top of the heap above which malloc returns memory to the kernel. */
const KEPT_FREE_BYTES = 64 << 20
/** malloc maps allocations from this size on separately, and unmaps them when they are freed. */
const KEPT_PIECE_MAX = 4 << 20

let isTuned = false

/**
 * Makes malloc keep freed memory. Receivers allocate a buffer for each large message, and the collector frees them in
 * batches. With glibc's default of 128 KiB every batch returns to the kernel; faulting the pages in again costs more
 * than the copy. Both limits are set: setting either one ends glibc's own adjustment of M_MMAP_THRESHOLD
 * (mallopt(3)).
 */
export function keepFreedMemory(): void {
  if (isTuned) return
  isTuned = true
  const { libc } = loadLibc()
  libc?.mallopt?.(M_TRIM_THRESHOLD, KEPT_FREE_BYTES)
  libc?.mallopt?.(M_MMAP_THRESHOLD, KEPT_PIECE_MAX)
}
