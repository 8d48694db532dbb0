/**
 * Memory of this thread that peers may map: one sealed memfd for each allocation. The program gets a Uint8Array over
 * our mapping. Mapping and descriptor stay until the ArrayBuffer is collected; the descriptor is passed to further
 * peers.
 */
import { closeSync } from 'node:fs'
import { openLog } from '../log.ts'
import { type Libc, loadLibc } from '../posix/libc.ts'
import { mapUntilCollected } from '../posix/mapping.ts'
import { createSealed, ownedByThread, sealForGood } from '../posix/sealed-memory.ts'
import { undisturbed } from '../threads/undisturbed.ts'

const log = openLog('fastsockets:nic:shm')

export interface SharedMemory {
  readonly fd: number
  readonly length: number
  /** Whether peers may write to it. The seals enforce it. */
  readonly mayWrite: boolean
}

const allocated = new WeakMap<ArrayBufferLike, SharedMemory>()

/** `length` zeros that peers may map, and write if they `mayWrite`; undefined if the system refuses. */
export function allocateShared(length: number, mayWrite: boolean): Uint8Array | undefined {
  const { libc } = loadLibc()
  if (libc === undefined || length === 0) return undefined
  try {
    return undisturbed(() => {
      const fd = ownedByThread(libc, createSealed(libc, 'fastsockets-segment', length))
      const memory = mapOwn(libc, fd, length)
      // Sealed after our own mapping, which stays writable. If this throws, the collector closes `fd` with `memory`.
      sealForGood(libc, fd, mayWrite)
      allocated.set(memory, { fd, length, mayWrite })
      return new Uint8Array(memory)
    })
  } catch (error) {
    // Out of descriptors, for example.
    log('no memory to share: %s', (error as Error).message)
    return undefined
  }
}

function mapOwn(libc: Libc, fd: number, length: number): ArrayBuffer {
  try {
    return mapUntilCollected(libc, fd, length, () => closeSync(fd))
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

/** The shared memory behind `bytes`; undefined for a part of it, as a peer that may map a part can map all of it. */
export function sharedMemoryOf(bytes: Uint8Array): SharedMemory | undefined {
  const shared = allocated.get(bytes.buffer)
  return shared !== undefined && bytes.byteOffset === 0 && bytes.length === shared.length ? shared : undefined
}
