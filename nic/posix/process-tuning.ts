/** What a busy process asks of the operating system for itself. Without a C library these do nothing. */
import { loadLibc } from './libc.ts'

// mallopt(3), glibc.
const M_TRIM_THRESHOLD = -1
const M_MMAP_THRESHOLD = -3
/** Freed memory at the top of the heap that malloc keeps instead of giving it back to the kernel. */
const KEPT_FREE_BYTES = 64 << 20
/** Larger pieces than this are the kernel's each time. */
const KEPT_PIECE_MAX = 4 << 20

let isTuned = false

/**
 * Receivers allocate a buffer for each large message, and the collector frees them in batches. With glibc's default of
 * 128 KiB every batch goes back to the kernel and is faulted in again page by page, which costs more than the copy.
 * Setting the one limit fixes the other, which is 128 KiB as well, and which malloc would otherwise raise by itself.
 */
export function keepFreedMemory(): void {
  if (isTuned) return
  isTuned = true
  const { libc } = loadLibc()
  libc?.mallopt?.(M_TRIM_THRESHOLD, KEPT_FREE_BYTES)
  libc?.mallopt?.(M_MMAP_THRESHOLD, KEPT_PIECE_MAX)
}
