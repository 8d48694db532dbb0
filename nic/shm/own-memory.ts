/**
 * Reads this process's own memory by address, as `write(2)` would: for bytes of a buffer that the program may have
 * detached. The kernel copies, so unmapped memory is a failure and does not end the process.
 */
import { loadLibc } from '../posix/libc.ts'
import { readProcess } from './process-memory.ts'

/** The address of `bytes`; 0 without a C library. */
export function addressOf(bytes: Uint8Array): number {
  const { libc } = loadLibc()
  return libc === undefined ? 0 : Number(libc.address(bytes))
}

/** Fills `into` with the current bytes at `address`; false if they cannot be read. */
export function readOwnMemory(address: number, into: Uint8Array): boolean {
  const { libc } = loadLibc()
  const { length } = into
  if (libc === undefined || address === 0) return false
  const read = readProcess(libc, process.pid, libc.address(into), BigInt(address), length)
  // This use of `into` keeps it alive until the kernel has written to its address.
  return read === length && into.length === length
}
