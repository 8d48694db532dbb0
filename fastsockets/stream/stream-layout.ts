/**
 * The active messages of sockets. Words are int32; sequence numbers count bytes, start at 0 and wrap at 2^32. The
 * client numbers a connection with a positive number. `to` is positive for a number that the receiver gave, and negated
 * for one of the sender: a client can send before it has an answer.
 *
 *   index     kind      words                                     payload
 *   CONNECT   request   0 number 1 port   2 window   3 family     the address that was dialled, ASCII
 *   ACCEPT    reply     0 to     1 window 2 client port   3 to 6 promised ports, or 0
 *   REFUSE    reply     0 to     1 refusal (bootstrap-layout.ts)
 *   DATA      one-way   0 to     1 sequence   2 consumed   3 flags   bytes of the stream
 *   CONSUMED  one-way   0 to     1 consumed
 *   CLOSE     one-way   0 to     1 how: CLOSE_DONE, CLOSE_RESET or CLOSE_EARLY   2 received
 *   SRC_AVAIL one-way   0 to     1 sequence   2 consumed   3 length   key of the sender's memory
 *   RD_COMPL  one-way   0 to     1 sequence   2 consumed
 *   SINK_AVAIL one-way  0 to     1 sequence   2 consumed   3 length   key of the receiver's memory
 *   WR_COMPL  one-way   0 to     1 sequence   2 consumed   3 length
 *   BOUND     request   0 window                                  the bootstrap's transcript, 32 bytes
 *
 * BOUND is the first message of either side over a channel that a bootstrap has made; both transcripts must be equal. Its window
 * is promised to the receiver's first CONNECT; 0 is no promise.
 *
 * `window` is the size of the sender's receive buffer for this socket: the peer may have that many bytes under way that
 * are not yet reported as consumed. Before the ACCEPT a client may have `EARLY_WINDOW` bytes under way, or the window that was
 * promised; it may send DATA and CLOSE then, nothing else. If the server sends a REFUSE instead, it has dropped them. `consumed` counts the bytes that the program has taken; it rides on every DATA and
 * goes alone once half a window is owed (EMP 2002, delayed and piggybacked acknowledgements).
 *
 * SRC_AVAIL stands in place of `length` bytes of DATA: the receiver may fetch them from the sender's memory. It says by
 * RD_COMPL up to which sequence it has; the sender goes on from there. If that is short of the end, the rest comes as DATA
 * (what SDP calls SendSm): the receiver's program does not read, or the memory cannot be reached.
 *
 * SINK_AVAIL says where the bytes from the receiver's `sequence` on may be written. WR_COMPL stands in place of `length`
 * bytes of DATA: they are there. Anything else that begins at that sequence makes the sink void.
 *
 * FIN ends a direction after its last byte; CLOSE_DONE says that the program has closed the socket and reads nothing
 * more; CLOSE_RESET that it closed it with bytes unread or on purpose. `received` is the sequence up to which bytes had come
 * by then: if more was sent, it was on its way, and unread, too. The number of a connection is free again when both sides
 * have said CLOSE, or after a REFUSE. CLOSE_EARLY is a CLOSE_DONE of a client whose program had
 * not looked for data yet, with or without an answer: whatever was sent to it was sent after its end.
 */
export const CONNECT = 1
export const ACCEPT = 2
export const REFUSE = 3
export const DATA = 4
export const CONSUMED = 5
export const CLOSE = 6
export const SRC_AVAIL = 7
export const RD_COMPL = 8
export const SINK_AVAIL = 9
export const WR_COMPL = 10
export const BOUND = 11

export const BOUND_WORDS = 1
export const CONNECT_WORDS = 4
/** DATA, SRC_AVAIL, SINK_AVAIL and WR_COMPL. */
export const BYTES_WORDS = 4
export const CONSUMED_WORDS = 2
export const CLOSE_WORDS = 3
export const RD_COMPL_WORDS = 3

/**
 * DATA flags: the end of this direction; that these bytes are to be handed over by themselves, not with those behind; beside
 * the first, that this direction goes on by TCP, or alone, that the peer's is asked to; alone, that the peer's direction has left TCP.
 */
export const FLAG_FIN = 1
export const FLAG_PUSH = 2
export const FLAG_BACK = 4
export const FLAG_MOVED = 8

/** What each direction of a promotion begins with: how many bytes this side has given to TCP. No program reads it. */
export const COUNT_SIZE = 8

/** Whether DATA without bytes and with these flags may follow the end of its direction. */
export function mayFollowEnd(flags: number): boolean {
  return flags !== 0 && (flags & ~(FLAG_BACK | FLAG_MOVED)) === 0
}

export const CLOSE_DONE = 0
export const CLOSE_RESET = 1
export const CLOSE_EARLY = 2

/** CONNECTs under way per channel; no other message of sockets uses credits. */
export const CHANNEL_CREDITS = 4096
/** Most client ports that a peer was promised and has not used: so many connects to a busy server know their port. */
export const PORTS_PROMISED_MAX = 8
/** Payload of one DATA message. */
export const SEGMENT_MAX = 64 * 1024
/** A message may be longer by this if all of a write fits then: 64 KiB of a program in the frames of tls or http2. */
export const FRAMING_MAX = 2048
/**
 * Most bytes of one direction of a socket under way or unread, unless there are very many sockets: as many as Linux
 * lets TCP keep (tcp_wmem). The receive buffer has memory only for unread bytes.
 */
export const WINDOW = 4 << 20
/** The smallest window: for new sockets beside very many others, and for each while the process is over its budget. */
export const SHRUNK_WINDOW = 64 * 1024
/** Consumed bytes that are reported in a message of their own; half of a smaller window. */
export const CONSUMED_DUE = 512 * 1024
export const WINDOW_MAX = 1 << 30
/** Bytes that a client without a promise may send before the answer. A smaller window is none. */
export const EARLY_WINDOW = SEGMENT_MAX
/** Bytes that one SRC_AVAIL offers: few enough that time-outs see a large write move. */
export const OFFER_MAX = 4 << 20
/** Shorter chunks are never offered: the messages of an offer cost more than a copy. */
export const THRESHOLD_MIN = 32 * 1024
/** The key of registered memory that SRC_AVAIL carries. */
export const KEY_MAX = 256
/** Bytes of one fetch. Each takes a turn of the event loop, so that other sockets progress. */
export const FETCH_MAX = 256 * 1024
/** The same into a posted receive, which needs no new memory: about as long a copy. */
export const FETCH_POSTED_MAX = 1 << 20
/** Sockets on one channel, each way together: about as many as there are client ports. */
export const STREAMS_MAX = 1 << 15
