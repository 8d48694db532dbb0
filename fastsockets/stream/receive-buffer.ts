import { copyBytes } from '../../nic/index.ts'
import type { StreamHost, UnreadCount } from './stream-host.ts'
import { WINDOW } from './stream-layout.ts'

const SIZE_MIN = 16 * 1024
/** One read of libuv. */
const READ_MAX = 64 * 1024
/** Most emptied memory that is kept for other buffers. */
const SPARES_MAX = 4

const spares: Buffer[] = []

/**
 * The contiguous receive buffer of one socket (Fast Sockets 1997, section 3.3). It has memory only for bytes that
 * arrive while the program does not read.
 */
export class ReceiveBuffer {
  private readonly host: Pick<StreamHost, 'allocate'>
  private readonly unread: Pick<UnreadCount, 'noteKept'>
  private bytes: Buffer | undefined
  /** The bytes are at `start … start + length`. */
  private start = 0
  length = 0

  constructor(host: Pick<StreamHost, 'allocate'>, unread: Pick<UnreadCount, 'noteKept'>) {
    this.host = host
    this.unread = unread
  }

  append(source: Uint8Array, offset: number, length: number): void {
    const bytes = this.room(this.length + length)
    bytes.set(source.subarray(offset, offset + length), this.start + this.length)
    this.length += length
    this.unread.noteKept(length)
  }

  /** The next bytes, at most one read of libuv, in memory of their own. */
  read(): Buffer {
    const own = this.host.allocate(Math.min(this.length, READ_MAX))
    this.readInto(own)
    return own
  }

  /** Fills `target`; returns how many bytes were read. An empty buffer keeps the smallest memory at most. */
  readInto(target: Uint8Array): number {
    const count = Math.min(target.length, this.length)
    if (count === 0) return 0
    copyBytes(this.bytes as Buffer, this.start, target, 0, count)
    this.skip(count)
    return count
  }

  /** All bytes, in place: valid until the next append or read. */
  peek(): Buffer {
    return (this.bytes as Buffer).subarray(this.start, this.start + this.length)
  }

  /** Removes the first `count` bytes, unless the buffer was cleared meanwhile. */
  skip(count: number): void {
    if (this.bytes === undefined) return
    this.length -= count
    this.unread.noteKept(-count)
    this.start = this.length === 0 ? 0 : this.start + count
    if (this.length > 0 || this.bytes.length <= SIZE_MIN) return
    if (spares.length < SPARES_MAX) spares.push(this.bytes)
    this.clear()
  }

  clear(): void {
    this.unread.noteKept(-this.length)
    this.bytes = undefined
    this.start = 0
    this.length = 0
  }

  /** Memory for `needed` bytes in all. */
  private room(needed: number): Buffer {
    const old = this.bytes
    if (old !== undefined && old.length >= this.start + needed) return old
    const target = old !== undefined && old.length >= needed ? old : this.larger(needed)
    old?.copy(target, 0, this.start, this.start + this.length)
    this.bytes = target
    this.start = 0
    return target
  }

  private larger(needed: number): Buffer {
    let size = this.bytes?.length ?? SIZE_MIN
    while (size < needed) size *= 2
    const wanted = Math.max(needed, Math.min(size, WINDOW))
    const spare = wanted > SIZE_MIN ? spares.findIndex(({ length }) => length >= wanted) : -1
    return spare === -1 ? this.host.allocate(wanted) : (spares.splice(spare, 1)[0] as Buffer)
  }
}
