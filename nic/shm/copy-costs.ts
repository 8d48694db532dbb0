import { copyBytes } from '../copy.ts'
import type { CopyCosts } from '../nic.ts'
import { performance } from '../performance.ts'
import { loadLibc } from '../posix/libc.ts'
import { readProcess } from './process-memory.ts'

/** The part of a ring that is in use at a time under load, in bytes. */
const RING_PART = 512 * 1024
const FRAME_SIZE = 64 * 1024
const ROUNDS = 3

/**
 * Measures with this process's own memory, which costs the kernel as much as a peer's. Undefined without a C library,
 * or if the kernel refuses process_vm_readv.
 */
export function measureCopyCosts(length: number): CopyCosts | undefined {
  const { libc } = loadLibc()
  if (libc === undefined) return undefined
  const source = Buffer.alloc(length, 1)
  const target = Buffer.alloc(length, 2)
  const ring = Buffer.alloc(RING_PART, 3)
  const from = libc.address(source)
  const into = libc.address(target)
  let isRead = true
  // Measured first: it uses only addresses, and the later use of `source` and `target` keeps both alive until then.
  const onceUs = shortest(() => {
    isRead &&= readProcess(libc, process.pid, into, from, length) === length
  })
  const twiceUs = shortest(() => {
    for (let at = 0; at < length; at += FRAME_SIZE) {
      const part = Math.min(FRAME_SIZE, length - at)
      copyBytes(source, at, ring, at % RING_PART, part)
      copyBytes(ring, at % RING_PART, target, at, part)
    }
  })
  return isRead ? { twiceUs, onceUs } : undefined
}

/** Time of the shortest round in microseconds: the one that other threads disturbed least. */
function shortest(work: () => void): number {
  let bestMs = Number.POSITIVE_INFINITY
  for (let i = 0; i < ROUNDS; i++) {
    const startMs = performance.now()
    work()
    bestMs = Math.min(bestMs, performance.now() - startMs)
  }
  return bestMs * 1000
}
