/**
 * One-way byte ring in memory that two processes share: one producer, one consumer.
 *
 *   control page (4096 bytes)
 *   byte   0  HEAD          bytes released so far             written by the consumer   (own cache line)
 *   byte  64  ARMED         1: the consumer sleeps, ring it   set by the consumer, cleared by either
 *   byte 128  ROOM_WANTED   1: the producer waits for room    set by the producer, cleared by either
 *   byte 192  SHOWN         a word of the layer above         written by the producer   (`showWord`)
 *   byte 256  CUT_OFF       1: the producer closed because of a fault   set by the producer, never cleared
 *   byte 320  OVERFLOW_HEAD as HEAD, of the overflow ring     written by the consumer
 *   byte 4096 size bytes of frames
 *
 *   frame, always on a multiple of 8, never across the end of the ring
 *   +0  LENGTH   int32, bytes of content; SKIP: the rest of the ring up to its end is unused;
 *                SWITCH: the next frame is in the other ring, this one has no content
 *   +4  STAMP    int32, the position of this frame | 1; NO_FRAME: no frame is published here
 *   +8  content, padded to a multiple of 8
 *
 * Positions are uint32 numbers that count bytes and wrap at 2^32. They are multiples of 8 and compared by difference
 * only. The producer writes NO_FRAME behind the frame, then publishes the frame with one store of its STAMP. So a
 * waiting consumer reads one cache line only. The consumer copies the content out, then releases it with one store of
 * HEAD.
 *
 * A claim that does not fit by the last HEAD that was read reads HEAD again: a multiple of 8, not behind the earlier value
 * and not beyond the tail, else the ring is broken. The consumer copies LENGTH and STAMP, then checks them: the stamp is
 * the position's; a skip passes over less than the largest frame takes; the frame does not pass the end. A failed check
 * breaks the interface, and nothing more is read. HEAD is stored whenever a sixteenth of the ring was consumed, at the end
 * of a poll if the producer waits for room, and before sleep.
 *
 * The overflow ring is a second, larger ring for bursts that exceed the first one. Its memory is sparse: it costs
 * nothing until it is used. A producer that finds the first ring full publishes a SWITCH there and continues in the
 * overflow ring, behind the frames of its last use. After the consumer has released all of the overflow ring, the
 * producer publishes a SWITCH there and continues in the first ring, behind the earlier SWITCH. A SWITCH fits into
 * the header that the producer always keeps free behind the last frame.
 *
 * The stores of STAMP and ARMED are sequentially consistent. So the producer ("publish, then read ARMED") and the
 * consumer ("set ARMED, then read STAMP") cannot both miss each other; the same holds for HEAD and ROOM_WANTED.
 */
export const CONTROL_SIZE = 4096
export const HEAD_WORD = 0 / 4
export const ARMED_WORD = 64 / 4
export const ROOM_WANTED_WORD = 128 / 4
export const SHOWN_WORD = 192 / 4
export const CUT_OFF_WORD = 256 / 4
export const OVERFLOW_HEAD_WORD = 320 / 4

export const FRAME_LENGTH = 0
export const FRAME_STAMP = 4
export const FRAME_HEADER_SIZE = 8
export const SKIP = -1
export const SWITCH = -2
export const NO_FRAME = 0

export const RING_SIZE_MIN = 64 * 1024
/** Positions are compared by signed 32-bit difference, which needs size <= 2^30. */
export const RING_SIZE_MAX = 1 << 30
/** Both rings of a connection should fit into the L2 cache of a core: larger rings are slower. */
export const RING_SIZE_DEFAULT = 1 << 20

/**
 * A poll ends behind the frame that exceeds this, so that a producer that keeps refilling the ring cannot prolong it.
 */
export const POLL_BYTES_MAX = 1 << 20

/**
 * Largest frame content: an eighth of the ring, so that a frame and the skip before it take about a quarter at most.
 */
export function frameMaxOf(ringSize: number): number {
  return ringSize / 8
}

/** The STAMP of a published frame is its position with this bit: never NO_FRAME, and different in every lap of the ring. */
export const STAMP_BIT = 1

export function stampOf(position: number): number {
  return position | STAMP_BIT
}

export function align8(length: number): number {
  return (length + 7) & ~7
}

/** 16 MiB for a ring of the default size: four sockets can send their windows of 4 MiB at once to a busy peer. */
export function overflowSizeOf(ringSize: number): number {
  return Math.min(16 * ringSize, RING_SIZE_MAX)
}

/** Returns the memory of an overflow ring. Called when the ring is needed, so that it is mapped late. */
export type OpenOverflow = () => { readonly memory: ArrayBuffer; readonly offset: number }

/** Bytes of memory of one ring, with its control page and without its overflow ring. */
export function ringBytes(ringSize: number): number {
  return CONTROL_SIZE + ringSize
}

export function isRingSize(size: number): boolean {
  return Number.isInteger(size) && size >= RING_SIZE_MIN && size <= RING_SIZE_MAX && (size & (size - 1)) === 0
}
