/**
 * One frame of the reliability layer, which is the whole content of one frame of the interface below. Words of 32 bits.
 *
 *   +0   CRC        CRC32C of the frame, computed while this word holds the frame's length
 *   +4   KIND       bits 0-4: DATA, ACK, PROBE or PART
 *                   bit 5: ECHO is said for the first time, so it has come just now
 *                   bits 6-31: SACK_AT, a sequence number whose six low bits are 0
 *   +8   SEQUENCE   number of the frame: one more for each new frame, the same when it is sent again; DATA and PART
 *   +12  ORDINAL    number of the transmission: higher for each, first or again; not of ACK
 *   +16  ACK        every frame before this one was handed over
 *   +20  ECHO       the highest ORDINAL that has come
 *   +24  SACK       64 bits, low word first: bit i says that frame SACK_AT + i has come and waits to be handed over
 *   +32  content    DATA and PART
 *
 * Sequence numbers and ordinals count up for ever, wrap at 2^32, and are compared by difference only. Acknowledgements
 * ride on every frame. ACK carries nothing else; PROBE asks for one. A frame for the layer above that does not fit into
 * one of the interface below goes as several: PART for all but the last, a DATA for that. A PART has a multiple of 8 bytes.
 */
export const CRC_WORD = 0
export const KIND_WORD = 1
export const SEQUENCE_WORD = 2
export const ORDINAL_WORD = 3
export const ACK_WORD = 4
export const ECHO_WORD = 5
export const SACK_WORD = 6
export const HEADER_WORDS = 8
export const HEADER_SIZE = 32

export const KIND_DATA = 0
export const KIND_ACK = 1
export const KIND_PROBE = 2
export const KIND_PART = 3
export const KIND_MASK = 0x1f
export const FRESH_ECHO = 0x20

/**
 * Frames that may be under way each way; a power of two, the same on both sides. Several times what a peer receives
 * between two polls of the sender.
 */
export const WINDOW_FRAMES = 1024
export const WINDOW_MASK = WINDOW_FRAMES - 1
/** Frames that one SACK covers. */
export const SACK_FRAMES = 64

/** The first of the frames that share a SACK with `sequence`. */
export function sackAtOf(sequence: number): number {
  return sequence & -SACK_FRAMES
}

export function align8(length: number): number {
  return (length + 7) & ~7
}
