/**
 * The memory of a verbs connection. A frame is one RDMA write with immediate data: it has the same offset in the
 * receiver's ring as in the sender's, and the immediate has its length. The receive that it uses up has no memory.
 * Little-endian, except for the immediate, which is in network order.
 *
 *   slab of one end
 *   +0                   credit cell, written by the peer: what is free again of what this end has sent
 *   +4096                receive ring, written by the peer
 *   +4096 + ring size    page of this end's own cell, from which it is sent
 *   +8192 + ring size    send ring, written by this end
 *
 * An iWARP device has no immediate data: the word follows the write as a message of 4 bytes. Received words are in the
 * page of the credit cell, from +1024 on; sent words in the page of the own cell, from +1024 on.
 *
 *   credit cell, 8 bytes, and the first 8 bytes of each frame
 *   +0  RELEASED   u32, bytes of the ring released so far
 *   +4  RENEWED    u32, receives posted anew so far
 *   +8  (of a frame) its content, padded to a multiple of 8
 *
 *   immediate     kind << 28 | value
 *   FRAME    length of the content. It lies behind the one before, or at the ring's begin if it would not fit before its end
 *   WANT     the sender of this waits for so many bytes of room: tell it, by a CREDIT, when they are there
 *   CREDIT   the room that was wanted is there; the cell was written with it
 *   HELLO    the offering side's first word: it is connected, and the way works
 *   BYE      closed on purpose: no frame follows, and none is read
 *
 * Positions count bytes for ever and wrap at 2^32; they are compared by difference.
 *
 * WANT is answered by one CREDIT once the room is free and at most a quarter of the receives holds unhandled frames. WANT,
 * CREDIT, HELLO and BYE come with a write of the credit cell; the same write without an immediate is sent when a quarter
 * of the ring, or half of the receives, became free. Each immediate uses up a receive of the peer; frames leave
 * RECEIVES_RESERVED of them. On iWARP, BYE is followed by a read of the peer's cell.
 *
 * A violation ends the connection: a frame longer than the limit, without room, or beyond the granted receives; credit for
 * more than was sent; an unknown kind. A position older than a known one is none, because writes of the cell overtake
 * unpolled frames.
 */
export const PAGE_SIZE = 4096
export const CELL_SIZE = 8
export const CELL_RELEASED_WORD = 0 / 4
export const CELL_RENEWED_WORD = 4 / 4
export const FRAME_HEADER_SIZE = 8
/** Words that replace immediates; more than can be under way. */
export const NOTICES_AT = 1024
export const NOTICE_SIZE = 4
export const SENT_NOTICES = 512
/** Memory after the cell, for a read of the peer's cell. */
export const READ_BACK_AT = 64

export const KIND_SHIFT = 28
export const VALUE_MASK = 0x0fff_ffff
export const KIND_FRAME = 0
export const KIND_WANT = 1
export const KIND_CREDIT = 2
export const KIND_HELLO = 3
export const KIND_BYE = 4

export const RING_SIZE_MIN = 64 * 1024
/** The length of a frame, an eighth of the ring, must fit beside the kind. */
export const RING_SIZE_MAX = 1 << 30
/** As over shared memory, so that the layers above have the same limits. Two of them are pinned for each connection. */
export const RING_SIZE_DEFAULT = 1024 * 1024
/** Receives for each end, and so frames under way, if they are its own. */
export const RECEIVES_MIN = 128
export const RECEIVES_MAX = 256
const RING_BYTES_PER_RECEIVE = 512
/** The fewest receives of an end that shares them with other connections. */
export const RECEIVES_GRANTED_MIN = 16
/** Receives that no frame may use up, so that WANT, CREDIT, HELLO and BYE can always be sent. */
export const RECEIVES_RESERVED = 4

export function receivesOf(ringSize: number): number {
  return Math.min(Math.max(ringSize / RING_BYTES_PER_RECEIVE, RECEIVES_MIN), RECEIVES_MAX)
}

/** True if an end can have so many. */
export function areReceives(count: number): boolean {
  return count >= RECEIVES_GRANTED_MIN && count <= RECEIVES_MAX && (count & (count - 1)) === 0
}

export function frameMaxOf(ringSize: number): number {
  return ringSize / 8
}

export function align8(length: number): number {
  return (length + 7) & ~7
}

export function isRingSize(size: number): boolean {
  return Number.isInteger(size) && size >= RING_SIZE_MIN && size <= RING_SIZE_MAX && (size & (size - 1)) === 0
}

/** Between this machine's byte order and the network's. */
export function swapBytes(word: number): number {
  return ((word & 0xff) << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24)
}
