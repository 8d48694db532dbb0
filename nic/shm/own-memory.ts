/**
 * This process's own memory, by address: where the bytes of a buffer are that JavaScript has let go of, as `write(2)` would
 * find them. The kernel copies, so that memory that is gone is a failure and not the end of the process.
 */
import { loadLibc } from '../posix/libc.ts'
import { readProcess } from './process-memory.ts'

/** Where `bytes` begin; 0 if nobody can tell. */
export function addressOf(bytes: Uint8Array): number {
  const { libc } = loadLibc()
  return libc === undefined ? 0 : Number(libc.address(bytes))
}

/** Fills `into` with what is at `address` now; false if that cannot be read. */
export function readOwnMemory(address: number, into: Uint8Array): boolean {
  const { libc } = loadLibc()
  const { length } = into
  if (libc === undefined || address === 0) return false
  const read = readProcess(libc, process.pid, libc.address(into), BigInt(address), length)
  // Looked at again, so that it lives until now.
  return read === length && into.length === length
}
