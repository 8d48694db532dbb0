/**
 * The bytes of a connection after its handshake (handshake-layout.ts): frames, each on a multiple of 8. Little-endian.
 *
 *   +0  HEAD       u32: kind << 28 | bytes of content
 *   +4  RELEASED   u32: bytes of FRAMEs that the writer of this frame has handled so far, headers and padding
 *                  included; wraps at 2^32
 *   +8  content, padded to a multiple of 8
 *
 *   FRAME    content for the layer above
 *   CREDIT   no content: carries RELEASED when no FRAME does
 *   BYE      no content: the writer has closed; only the end of the stream follows
 *
 * Each direction has a window of the queue's size: FRAMEs that the peer has not handled never exceed it. So the bytes
 * in both kernels are bounded, and whatever was sent fits into the receive buffer. A reader tells RELEASED at the latest
 * when it has handled a `CREDIT_STEPS`th of the window: a peer that waits for room is always told.
 */
export const HEADER_SIZE = 8
export const KIND_SHIFT = 28
export const LENGTH_MASK = 0x0fff_ffff
export const KIND_FRAME = 1
export const KIND_CREDIT = 2
export const KIND_BYE = 3
/** With 4 steps a peer that has no room for the largest frame, an eighth of the window, waits for a CREDIT that comes. */
export const CREDIT_STEPS = 4
/** Room in a send buffer beyond the window: one CREDIT, the BYE, and 7 bytes that keep frames on multiples of 8. */
export const CONTROL_ROOM = 3 * HEADER_SIZE
/** Room in a receive buffer beyond the window: CREDITs lie between FRAMEs that no poll has taken. */
export const RECEIVE_SLACK = 64 * 1024

export function frameSize(length: number): number {
  return HEADER_SIZE + ((length + 7) & ~7)
}
