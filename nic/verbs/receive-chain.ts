import type { Libc } from '../posix/libc.ts'
import { RECV_ID_HIGH_WORD, RECV_NEXT, RECV_WR_SIZE } from './library-layout.ts'
import type { Pointer } from './verbs-library.ts'
import { identityOf, WORK_RECEIVE } from './work-identity.ts'

/** Receives that are posted with one call. */
export const RECEIVES_AT_ONCE = 32

/** Receives without memory, chained: the immediate is all that they bring. Built once, posted again and again. */
export class ReceiveChain {
  readonly pointer: Pointer
  /** Where the library may say which of them it refused. */
  readonly badPointer: Pointer
  /** Must live as long as the pointers. */
  readonly memory: Buffer

  /** `slot` is what completions of these receives say. */
  constructor(libc: Libc, slot: number) {
    this.memory = Buffer.from(new ArrayBuffer(RECEIVES_AT_ONCE * RECV_WR_SIZE + 8))
    this.pointer = libc.address(this.memory)
    this.badPointer = this.pointer + BigInt(RECEIVES_AT_ONCE * RECV_WR_SIZE)
    const identity = identityOf(WORK_RECEIVE, slot)
    for (let i = 0; i < RECEIVES_AT_ONCE; i++) {
      const at = i * RECV_WR_SIZE
      this.memory.writeInt32LE(identity, at + 4 * RECV_ID_HIGH_WORD)
      const next = i + 1 < RECEIVES_AT_ONCE ? this.pointer + BigInt(at + RECV_WR_SIZE) : 0n
      this.memory.writeBigUInt64LE(next, at + RECV_NEXT)
    }
  }
}
