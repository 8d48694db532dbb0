import type { Libc } from '../posix/libc.ts'
import { NOTICE_SIZE } from './frame-layout.ts'
import {
  RECV_ID_HIGH_WORD,
  RECV_ID_LOW_WORD,
  RECV_NEXT,
  RECV_SGE,
  RECV_SGE_COUNT,
  RECV_WR_SIZE,
  SGE_LENGTH_WORD,
  SGE_LKEY_WORD,
  SGE_SIZE,
} from './library-layout.ts'
import type { Slab } from './slab.ts'
import type { Pointer } from './verbs-library.ts'
import { identityOf, WORK_NOTICE, WORK_RECEIVE } from './work-identity.ts'

/** Receives posted with one call. */
export const RECEIVES_AT_ONCE = 32

/** Memory of a bundle of receives: notices of the slab, beginning with this index. */
export interface NoticePlaces {
  readonly slab: Slab
  readonly first: number
}

/**
 * Chained receives, built once and posted repeatedly. Without memory they bring only the immediate; with memory each
 * receives one notice, and its completion says which.
 */
export class ReceiveChain {
  readonly pointer: Pointer
  /** Where the library reports the receive that it refused. */
  readonly badPointer: Pointer
  /** Must live as long as the pointers. */
  readonly memory: Buffer

  /** `slot` is the slot in completions of these receives. */
  constructor(libc: Libc, slot: number, places?: NoticePlaces) {
    const identity = identityOf(places === undefined ? WORK_RECEIVE : WORK_NOTICE, slot)
    const sgesAt = RECEIVES_AT_ONCE * RECV_WR_SIZE
    const badAt = sgesAt + RECEIVES_AT_ONCE * SGE_SIZE
    this.memory = Buffer.from(new ArrayBuffer(badAt + 8))
    this.pointer = libc.address(this.memory)
    this.badPointer = this.pointer + BigInt(badAt)
    for (let i = 0; i < RECEIVES_AT_ONCE; i++) {
      const at = i * RECV_WR_SIZE
      this.memory.writeInt32LE(identity, at + 4 * RECV_ID_HIGH_WORD)
      const next = i + 1 < RECEIVES_AT_ONCE ? this.pointer + BigInt(at + RECV_WR_SIZE) : 0n
      this.memory.writeBigUInt64LE(next, at + RECV_NEXT)
      if (places === undefined) continue
      const index = places.first + i
      const sgeAt = sgesAt + i * SGE_SIZE
      this.memory.writeInt32LE(index, at + 4 * RECV_ID_LOW_WORD)
      this.memory.writeBigUInt64LE(this.pointer + BigInt(sgeAt), at + RECV_SGE)
      this.memory.writeInt32LE(1, at + RECV_SGE_COUNT)
      this.memory.writeBigUInt64LE(BigInt(places.slab.noticesAddress + index * NOTICE_SIZE), sgeAt)
      this.memory.writeUInt32LE(NOTICE_SIZE, sgeAt + 4 * SGE_LENGTH_WORD)
      this.memory.writeUInt32LE(places.slab.incoming.lkey, sgeAt + 4 * SGE_LKEY_WORD)
    }
  }
}
