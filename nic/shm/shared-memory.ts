/**
 * Memory of this thread that peers may map: a sealed memfd each. The program sees a Uint8Array over our own mapping of it,
 * which stays for as long as anybody refers to its ArrayBuffer; the descriptor as well, to be passed to further peers.
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
  /** Whether peers may write there: the seals say so, too. */
  readonly mayWrite: boolean
}

const allocated = new WeakMap<ArrayBufferLike, SharedMemory>()

/** `length` zeros that peers may map, and write if they `mayWrite`; undefined where that cannot be had. */
export function allocateShared(length: number, mayWrite: boolean): Uint8Array | undefined {
  const { libc } = loadLibc()
  if (libc === undefined || length === 0) return undefined
  try {
    return undisturbed(() => {
      const fd = ownedByThread(libc, createSealed(libc, 'fastsockets-segment', length))
      const memory = mapOwn(libc, fd, length)
      // After our own mapping, which goes on writing. If this fails, the descriptor is closed with the mapping.
      sealForGood(libc, fd, mayWrite)
      allocated.set(memory, { fd, length, mayWrite })
      return new Uint8Array(memory)
    })
  } catch (error) {
    // No descriptors left, perhaps.
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

/** What `allocateShared` has made, if `bytes` are all of it: who may map a part may map the whole. */
export function sharedMemoryOf(bytes: Uint8Array): SharedMemory | undefined {
  const shared = allocated.get(bytes.buffer)
  return shared !== undefined && bytes.byteOffset === 0 && bytes.length === shared.length ? shared : undefined
}
