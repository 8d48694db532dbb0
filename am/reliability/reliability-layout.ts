/**
 * One frame of the reliability layer, which is the whole content of one frame of the interface below. Words of 32 bits.
 *
 *   +0   CRC        CRC32C of the frame, computed while this word holds the frame's length; where the interface below
 *                   changes no frame (`isIntact`), the length itself
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
 *
 * Window. Under way are at most WINDOW_FRAMES frames after the last ACK, or half of the receive descriptors below if it
 * counts them, and the bytes that the sender retains. A whole in parts is at most a quarter of the retention, and half of
 * the window.
 *
 * Receiving. Dropped are a wrong CRC, a frame shorter than a header, an unknown kind, a part that is no multiple of 8 or
 * makes the whole too long, an ACK or ECHO of a frame that this side has never sent, a DATA frame at or beyond ACK + WINDOW_FRAMES. The
 * connection goes on. A DATA frame before ACK, or one that waits already, is a duplicate.
 *
 * Acknowledging. A bare ACK goes
 * - at the end of a poll in which frames came too early or again, or a PROBE came: one for each changed SACK, for the SACK
 *   before if the frame is among the first SACK_OVERLAP of its SACK, and for that of the next expected frame;
 * - once half of the window's frames, or of the retention's bytes, were handed over since the last frame went;
 * - ACK_DELAY_MS after a frame was handed over, with the next poll; and before sleep.
 *
 * Sending again. A frame is lost if a SACK of its range lacks it and the ECHO beside it is LOSS_THRESHOLD or more above
 * the frame's last ORDINAL. It is sent again at once, with a new ORDINAL. After a time-out without news, ORDINAL skips
 * LOSS_THRESHOLD numbers, and the first PROBES frames not known to have arrived are sent again; if all are known, a PROBE
 * asks for an ACK. The time-out is twice the shortest of the last 8 round trips, measured by fresh ECHOs, within bounds
 * (reliability-options.ts). It doubles until a frame is newly acknowledged.
 *
 * The end. The interface is broken with ERR_NIC_PEER_LOST after the peer's time-out, and VAIN_TIMEOUTS_MIN time-outs,
 * without a valid frame while frames are unacknowledged. Closing sends nothing.
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

/** Words that hold so many bytes. */
export function wordCount(length: number): number {
  return (length + 3) >> 2
}
