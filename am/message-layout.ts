/**
 * One active message inside one frame of a virtual interface.
 *
 *   +0   HEAD     int32   bits 0-1 kind, 2-5 word count (0..8), 8-15 handler index, 16-31 credits returned
 *   +4   words    int32 each
 *        padding to a multiple of 8
 *        payload  to the end of the frame (medium messages)
 *
 * Credits: every request uses one, and it comes back with some later frame the other way, or alone in a CREDIT frame
 * once half of them are owed. Replies and CREDIT frames use none, which is what makes bounded buffers deadlock-free
 * (Mainwaring and Culler 1995; von Eicken et al. 1992).
 */
export const KIND_REQUEST = 0
export const KIND_REPLY = 1
export const KIND_CREDIT = 2

export const KIND_MASK = 0x3
export const WORD_COUNT_SHIFT = 2
export const WORD_COUNT_MASK = 0xf
export const HANDLER_SHIFT = 8
export const HANDLER_MASK = 0xff
export const CREDITS_SHIFT = 16

export const HEAD_SIZE = 4
export const WORDS_MAX = 8
export const HANDLER_COUNT = 256
/** What 16 bits can return at once. */
export const CREDITS_LIMIT = 0xffff

/** Bytes before the payload of a message with `wordCount` words. */
export function headerSize(wordCount: number): number {
  return (HEAD_SIZE + 4 * wordCount + 7) & ~7
}

export function encodeHead(kind: number, wordCount: number, handler: number, credits: number): number {
  return kind | (wordCount << WORD_COUNT_SHIFT) | (handler << HANDLER_SHIFT) | (credits << CREDITS_SHIFT)
}
