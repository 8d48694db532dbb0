/**
 * One active message inside one frame of a virtual interface. Little-endian; every part begins on a multiple of 4.
 *
 *   +0   HEAD     bits 0-2 kind, 3 flag, 4-7 word count (0..8), 8-15 handler index or reason, 16-31 slot
 *   +4   ACKS     bits 0-15 first slot, 16-31 count: a run of slots whose requests the sender has finished
 *        TAG      two words, low and high; only requests, and only if the flag is set: without it the tag is 0
 *        REGION   two words, offset and length in a segment; only LONG, PART, GET, and a REPLY with the flag
 *        words    int32 each
 *        padding to a multiple of 8
 *        payload  to the end of the frame
 *
 *   kind      slot                      carries                                   the receiver
 *   REQUEST   one of the sender's       words, payload                            runs a handler, answers at most once
 *             NO_SLOT: one-way          the same; takes no credit                 runs a handler, which cannot answer
 *   REPLY     the request's             words, payload; flag: a region            runs a handler; the slot is free again
 *   CREDIT    -                         more runs of ACKS as its payload          nothing else
 *   RETURN    the request's             why, in place of a handler index          gives the request back to its program
 *   LONG      one of the sender's       words, a region, its bytes or none        runs a handler, answers at most once
 *   PART      the request's, or NO_SLOT a region and its bytes, of a LONG or a    puts them into its segment
 *                                       REPLY to come, or in answer to a GET
 *   GET       one of the sender's       a region                                  answers with PARTs and a REPLY
 *   BOUNCE    why, in place of a slot   words, payload of an undeliverable        gives the reply back to its program
 *                                       REPLY; of a long one, bytes in the frame
 *
 * A slot is a numbered credit. Each side has as many as both agreed on. A request takes one; its answer gives the
 * slot back or, without an answer, a run of ACKS does: with some later frame the other way, or alone in a CREDIT
 * frame. A one-way request takes no slot: its protocol bounds the requests under way by itself, as sockets do by
 * byte windows. Only channels whose owner knows such a bound accept one-way requests. Answers take no slot, which
 * makes bounded buffers free of deadlock (von Eicken et al. 1992; Mainwaring and Culler 1995, Active Messages 2,
 * sections 3 and 4).
 */
export const KIND_REQUEST = 0
export const KIND_REPLY = 1
export const KIND_CREDIT = 2
export const KIND_RETURN = 3
export const KIND_LONG = 4
export const KIND_PART = 5
export const KIND_GET = 6
export const KIND_BOUNCE = 7

export const KIND_MASK = 0x7
export const FLAG = 0x8
export const WORD_COUNT_SHIFT = 4
export const WORD_COUNT_MASK = 0xf
export const HANDLER_SHIFT = 8
export const HANDLER_MASK = 0xff
export const SLOT_SHIFT = 16
export const SLOT_MASK = 0xffff
/** In a PART that belongs to no request yet, and in a one-way request. */
export const NO_SLOT = 0xffff

export const RUN_COUNT_SHIFT = 16
export const RUN_FIRST_MASK = 0xffff
/** Most further runs in one CREDIT frame. */
export const CREDIT_RUNS_MAX = 64

export const HEAD_SIZE = 8
export const TAG_SIZE = 8
export const REGION_SIZE = 8
export const WORDS_MAX = 8
export const HANDLER_COUNT = 256
/** Slots each way: their numbers and counts fit 16 bits, and no slot has the number NO_SLOT. */
export const CREDITS_LIMIT = 0x7fff
/** Size of a header with all its parts. */
export const HEADER_SIZE_MAX = HEAD_SIZE + TAG_SIZE + REGION_SIZE + 4 * WORDS_MAX

/** Bytes before the payload, with `extra` bytes of tag and region. */
export function headerSize(wordCount: number, extra: number): number {
  return (HEAD_SIZE + extra + 4 * wordCount + 7) & ~7
}

export function encodeHead(kind: number, wordCount: number, handler: number, slot: number): number {
  return kind | (wordCount << WORD_COUNT_SHIFT) | (handler << HANDLER_SHIFT) | (slot << SLOT_SHIFT)
}

export function encodeRun(first: number, count: number): number {
  return first | (count << RUN_COUNT_SHIFT)
}

/** Bytes of tag and region by the four low bits of a HEAD. */
export const EXTRA_SIZES = Uint8Array.from({ length: 16 }, (_, bits) =>
  extraSize(bits & KIND_MASK, (bits & FLAG) !== 0),
)

function extraSize(kind: number, hasFlag: boolean): number {
  switch (kind) {
    case KIND_REQUEST:
      return hasFlag ? TAG_SIZE : 0
    case KIND_REPLY:
      return hasFlag ? REGION_SIZE : 0
    case KIND_LONG:
    case KIND_PART:
    case KIND_GET:
      return hasFlag ? TAG_SIZE + REGION_SIZE : REGION_SIZE
    default:
      return 0
  }
}
