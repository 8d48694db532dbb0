/**
 * One message of RPC inside requests of active messages, all for handler `RPC_HANDLER`. Either side may open calls on a
 * link; a call is known by its number and by the side that opened it. Words of each request, int32:
 *
 *   0  bits 0-7 kind, bits 8-15 flags
 *   1  call number, given by the opener: its low 12 bits are the call's place, the others a count; HELLO: version
 *   2  OPEN, DATA: bytes of the whole payload   CREDIT: bytes     HELLO: low word of the sender's tag
 *   3  OPEN, DATA: where this piece begins      CREDIT: items     HELLO: high word of the sender's tag
 *   4  OPEN: service number                     CANCEL: reason    HELLO: most payload bytes that the sender accepts in a request
 *   5  OPEN: method number
 *   6  OPEN: milliseconds until the deadline; 0: there is none
 *
 *   kind     sent by     meaning
 *   HELLO    both        opens the link: each side says it once, before anything else
 *   OPEN     the opener  opens a call with its first payload
 *   DATA     both        one item; FLAG_LAST: the sender sends no more; FLAG_ERROR: the payload is an error, which ends the call
 *   CREDIT   a receiver  that many more items and bytes of them may be sent (the paper's CTS)
 *   CANCEL   both        the call is over for the sender, who ignores what still comes
 *
 * A result that is there within the turn, and fits, is the reply to its OPEN, with the words of DATA. No other request has a reply.
 * A payload longer than one request holds travels in pieces, in order. The pieces of two payloads are never mixed.
 * An error is JSON: { name, code, message, cause?, details? }.
 */
export const RPC_HANDLER = 255
export const RPC_VERSION = 3

export const KIND_HELLO = 1
export const KIND_OPEN = 2
export const KIND_DATA = 3
export const KIND_CREDIT = 4
export const KIND_CANCEL = 5

export const KIND_BITS = 0xff
/** The sender sends no more items in this call. */
export const FLAG_LAST = 0x100
/** There is no item: the payload is empty and only the flags count. */
export const FLAG_EMPTY = 0x200
export const FLAG_ERROR = 0x400
/** The sender of this message has opened the call. OPEN always has it. */
export const FLAG_OPENER = 0x800
/** Forms of a payload that is no encoding. The bytes of a Uint8Array, by `v8Codec`. */
export const FLAG_BYTES = 0x1000
/** The bytes of a Buffer by `v8Codec`; those of any Uint8Array by `bytesCodec`. */
export const FLAG_BUFFER = 0x2000
/** A string in UTF-8, by `v8Codec`. */
export const FLAG_TEXT = 0x4000
export const FORMS = FLAG_BYTES | FLAG_BUFFER | FLAG_TEXT
/** The payload is the program's own memory, which it may change as soon as the function that sends has returned. */
export const OWN_MEMORY = FLAG_BYTES | FLAG_BUFFER

/** Why a call was cancelled. */
export const CANCELLED = 1
export const DEADLINE = 2

/** Service number of the directory, which every link has: its method 0 finds services by name. */
export const DIRECTORY = 0

// Limits.

/** Longest payload of one item or argument. */
export const MESSAGE_BYTES_MAX = 64 * 1024 * 1024
/** Payload bytes that wait in this process for credit or room on one link. */
export const QUEUE_BYTES_MAX = 256 * 1024 * 1024
/** Of that, what one port may hold. */
export const PORT_QUEUE_BYTES_MAX = 64 * 1024 * 1024
/** Calls under way that one link accepts from its peer. */
export const CALLS_MAX = 4096
/** Bytes that calls of the peer hold in payloads of more than one request: arguments, and items that are not taken. */
export const HELD_BYTES_MAX = 256 * 1024 * 1024
/** Items and bytes of them that the receiver of a stream holds; the last item may go beyond the bytes. */
export const WINDOW_ITEMS = 256
export const WINDOW_BYTES = 256 * 1024
/** Services of one endpoint. */
export const SERVICES_MAX = 1024
/** Errors that cause each other, and characters of each text of them, that travel. */
export const CAUSES_MAX = 4
export const ERROR_TEXT_MAX = 16 * 1024
/** Characters of an error with its details; beyond it the details are left out. */
export const DETAILS_MAX = 1024 * 1024
