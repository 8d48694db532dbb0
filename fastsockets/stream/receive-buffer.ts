import { copyBytes } from '../../nic/index.ts'
import type { StreamHost, UnreadCount } from './stream-host.ts'

/** Memory of the first piece if little has arrived. Shorter bytes are copied even if they come in memory of their own. */
const SIZE_MIN = 16 * 1024
/** One read of libuv: memory of all other pieces. */
const READ_MAX = 64 * 1024
/** Most emptied pieces that are kept for other buffers. */
const SPARES_MAX = 4

const spares: Buffer[] = []

/**
 * The receive buffer of one socket (Fast Sockets 1997, section 3.3). It has memory only for bytes that arrive while the program
 * does not read: pieces, of which all but the last are full. The program gets a full piece as it is, so that the stream
 * copies most bytes once, out of the ring.
 */
export class ReceiveBuffer {
  length = 0
  private readonly host: Pick<StreamHost, 'allocate'>
  private readonly unread: Pick<UnreadCount, 'noteKept'>
  private readonly pieces: Buffer[] = []
  /** Where the unread bytes of the first piece begin, and where those of the last one end: at 0 if there are none. */
  private start = 0
  private end = 0

  constructor(host: Pick<StreamHost, 'allocate'>, unread: Pick<UnreadCount, 'noteKept'>) {
    this.host = host
    this.unread = unread
  }

  append(source: Uint8Array, offset: number, length: number): void {
    for (let done = 0; done < length; ) {
      const last = this.roomyPiece(length - done)
      const count = Math.min(length - done, last.length - this.end)
      copyBytes(source, offset + done, last, this.end, count)
      this.end += count
      done += count
    }
    this.add(length)
  }

  /** Appends bytes in memory of their own, which belongs to the buffer from now on. */
  appendOwn(bytes: Buffer): void {
    const hasRoom = this.end > 0 && this.end < (this.pieces.at(-1) as Buffer).length
    if (hasRoom || bytes.length < SIZE_MIN) return this.append(bytes, 0, bytes.length)
    if (this.end === 0) this.drop()
    this.pieces.push(bytes)
    this.end = bytes.length
    this.add(bytes.length)
  }

  /** The next bytes, about one read of libuv, in memory of their own. */
  read(): Buffer {
    const { pieces, start, length } = this
    const used = this.firstLength()
    if (used < length && length <= READ_MAX) return this.copyOf(length)
    const isFull = start === 0 && used === (pieces[0] as Buffer).length
    return isFull ? this.takeFirst() : this.copyOf(used)
  }

  /** Fills `target`; returns how many bytes were read. */
  readInto(target: Uint8Array): number {
    const count = Math.min(target.length, this.length)
    for (let done = 0; done < count; ) {
      const part = Math.min(count - done, this.firstLength())
      copyBytes(this.pieces[0] as Buffer, this.start, target, done, part)
      this.skip(part)
      done += part
    }
    return count
  }

  /** The next bytes, in place: valid until the next append or read. */
  peek(): Buffer {
    return (this.pieces[0] as Buffer).subarray(this.start, this.start + this.firstLength())
  }

  /** Removes `count` bytes of the first piece, unless the buffer was cleared meanwhile. Without bytes it keeps the smallest memory at most. */
  skip(count: number): void {
    if (this.length === 0) return
    const isWhole = count === this.firstLength()
    this.add(-count)
    this.start += count
    if (!isWhole) return
    const isLast = this.length === 0
    if (isLast) this.end = 0
    this.start = 0
    if (isLast && (this.pieces[0] as Buffer).length <= SIZE_MIN) return
    const emptied = this.pieces.shift() as Buffer
    if (emptied.length === READ_MAX && spares.length < SPARES_MAX) spares.push(emptied)
  }

  clear(): void {
    this.add(-this.length)
    this.drop()
  }

  /** Unread bytes of the first piece. */
  private firstLength(): number {
    const { pieces, start, end } = this
    return (pieces.length === 1 ? end : (pieces[0] as Buffer).length) - start
  }

  private takeFirst(): Buffer {
    const first = this.pieces.shift() as Buffer
    this.add(-first.length)
    if (this.length === 0) this.end = 0
    return first
  }

  private copyOf(length: number): Buffer {
    const own = this.host.allocate(length)
    this.readInto(own)
    return own
  }

  /** The last piece, or a new one if that is full. `needed`: bytes that are to be appended. */
  private roomyPiece(needed: number): Buffer {
    const isSmall = this.end === 0 && needed <= SIZE_MIN
    if (this.end === 0 && !isSmall) this.drop()
    const last = this.pieces.at(-1)
    if (last !== undefined && this.end < last.length) return last
    const piece = isSmall ? this.host.allocate(SIZE_MIN) : (spares.pop() ?? this.host.allocate(READ_MAX))
    this.pieces.push(piece)
    this.end = 0
    return piece
  }

  private drop(): void {
    this.pieces.length = 0
    this.start = 0
    this.end = 0
  }

  private add(length: number): void {
    this.length += length
    this.unread.noteKept(length)
  }
}
