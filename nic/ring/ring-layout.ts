/**
 * One-way byte ring in memory that two processes share: one producer, one consumer.
 *
 *   control page (4096 bytes)
 *   byte   0  HEAD          bytes released so far             written by the consumer   (own cache line)
 *   byte  64  ARMED         1: the consumer sleeps, ring it   set by the consumer, cleared by either
 *   byte 128  ROOM_WANTED   1: the producer waits for room    set by the producer, cleared by either
 *   byte 192  SHOWN         a word for the consumer's program written by the producer   (`showWord`)
 *   byte 256  CUT_OFF       1: the producer closed because of a fault   set by the producer, never cleared
 *   byte 320  OVERFLOW_HEAD as HEAD, of the overflow ring     written by the consumer
 *   byte 4096 size bytes of frames
 *
 *   frame, always on a multiple of 8, never across the end of the ring
 *   +0  LENGTH   int32, bytes of content; SKIP: the rest of the ring up to its end is unused; SWITCH: the next frame is in the
 *                other ring, this one has no content
 *   +4  STAMP    int32, the position of this frame | 1; NO_FRAME: there is none here yet
 *   +8  content, padded to a multiple of 8
 *
 * Positions are uint32 numbers that count bytes for ever and wrap at 2^32; they are compared by difference only and are
 * always multiples of 8. The producer writes NO_FRAME behind the frame, then publishes it with one store of its STAMP;
 * so the consumer finds everything that it waits for in one cache line. It copies out, then releases with one store of
 * HEAD. Overflow: a second, larger ring for the same frames, for bursts that the first one has no room for. Its memory is sparse:
 * it costs nothing until it is used. A producer that finds the first ring full publishes a SWITCH there and goes on in the overflow
 * ring, behind what was there before. Once the consumer has released all of that, the producer publishes a SWITCH there, and
 * goes on in the first ring behind the SWITCH. The header that is always free behind the last frame has room for it.
 *
 * Both stores, of STAMP and of HEAD, are sequentially consistent, so that "publish, then look at ARMED" here and "set ARMED, then look at
 * STAMP" there cannot both miss.
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
/** Two rings (one each way) should fit in a core's L2 cache: a larger ring is a slower one. */
export const RING_SIZE_DEFAULT = 1 << 20

/** A poll ends behind the frame that exceeds this: a producer that refills the ring meanwhile does not keep the consumer. */
export const POLL_BYTES_MAX = 1 << 20

/** Largest frame content: an eighth of the ring, so that a frame and the skip before it are about a quarter at most. */
export function frameMaxOf(ringSize: number): number {
  return ringSize / 8
}

/** What marks a frame at this position as published. Never NO_FRAME, and different in every lap of the ring. */
export function stampOf(position: number): number {
  return position | 1
}

export function align8(length: number): number {
  return (length + 7) & ~7
}

/** Four sockets may write their windows of 4 MiB at once to a peer that is busy, beside a ring of the default size. */
export function overflowSizeOf(ringSize: number): number {
  return Math.min(16 * ringSize, RING_SIZE_MAX)
}

/** Memory of an overflow ring, mapped when it is first needed. */
export type OpenOverflow = () => { readonly memory: ArrayBuffer; readonly offset: number }

/** Bytes of memory that one ring takes. */
export function ringBytes(ringSize: number): number {
  return CONTROL_SIZE + ringSize
}

export function isRingSize(size: number): boolean {
  return Number.isInteger(size) && size >= RING_SIZE_MIN && size <= RING_SIZE_MAX && (size & (size - 1)) === 0
}
