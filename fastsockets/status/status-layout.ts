/**
 * The status page of one thread: a memfd called `fastsockets-status`, written by that thread alone and read by
 * processes that may inspect this one (docs/protocol.md). Numbers are little-endian float64, texts UTF-8 filled up with zeros.
 *
 *   header, 4096 bytes: word
 *   0 magic   1 version   2 thread   3 start, ms since 1970   4 rows that were ever used
 *   5 sockets opened so far   6 bytes received, 7 sent, 8 buffered, 9 received by ZCopy, 10 sent by it, by those that are closed
 *   11 moves of connections from TCP to the fast way, 12 back
 *   16 …   what the poller has done: turns, messages, empty turns, sleeps, doorbells
 *   24 datagrams received and 25 sent by pairs that are over, 26 dropped here of those received, 27 of those sent
 *   32 …   fallbacks, by the place of their code among FALLBACK_REASONS
 *   96 …   moves that were refused, or for which no channel was found, likewise
 *   160 state of the policy, its place among POLICY_STATES   161 its version   162 when it was read, ms since 1970   163 its rules
 *   164 …   decisions by rule: the default, rules 1 to 62, all further rules
 *   byte 1824: the policy's file   byte 2048: the program's path
 *
 *   row, 320 bytes, ROWS_MAX of them: word
 *   0 kind   1 transport   2 reason, 1 + its place, or 0   3 role   4 local port   5 remote port   6 start, ms since 1970
 *   7 ZCopy: 1 + its place among ZCOPY_STATES, or 0
 *   8 bytes received   9 sent   10 buffered (they found no receive posted)   11 taken by the program
 *   12 taken by the peer's program   13 the peer's window   14 received by ZCopy   15 sent by ZCopy
 *   16 what the program has written and is not sent   17 which directions have ended, a place among STREAM_STATES
 *   18, 19 of one direction of a pair of UDP sockets: datagrams delivered or sent, and dropped here
 *   20 of a connection to another container: 1 + the peer's user, else 0
 *   of a listener: 5 hashed port   8 connections accepted the fast way   9 over TCP   10 refused
 *   byte 192: local address or path     byte 256: remote address
 */
export const PAGE_NAME = 'fastsockets-status'
export const STATUS_MAGIC = 0x54535346
export const STATUS_VERSION = 6

export const HEADER_SIZE = 4096
export const ROW_SIZE = 320
/** Most rows of one thread. Further sockets and listeners work without a row. Unused rows take no memory. */
export const ROWS_MAX = 16_384
export const PAGE_SIZE = HEADER_SIZE + ROWS_MAX * ROW_SIZE

export const HEADER = {
  MAGIC: 0,
  VERSION: 1,
  THREAD: 2,
  START_MS: 3,
  ROWS_USED: 4,
  OPENED: 5,
  CLOSED_BYTES_IN: 6,
  CLOSED_BYTES_OUT: 7,
  CLOSED_BYTES_BUFFERED: 8,
  CLOSED_BYTES_FETCHED: 9,
  CLOSED_PEER_FETCHED: 10,
  PROMOTED: 11,
  DEMOTED: 12,
  POLLER: 16,
  CLOSED_DATAGRAMS_IN: 24,
  CLOSED_DATAGRAMS_OUT: 25,
  CLOSED_DROPPED_IN: 26,
  CLOSED_DROPPED_OUT: 27,
  FALLBACKS: 32,
  REFUSALS: 96,
  POLICY_STATE: 160,
  POLICY_VERSION: 161,
  POLICY_READ_MS: 162,
  POLICY_RULES: 163,
  POLICY_HITS: 164,
} as const
export const POLICY_HITS_COUNT = 64
export const POLICY_AT = 1824
export const POLICY_SIZE = 224
export const PROGRAM_AT = 2048
export const PROGRAM_SIZE = 2048

export const ROW = {
  KIND: 0,
  TRANSPORT: 1,
  REASON: 2,
  ROLE: 3,
  LOCAL_PORT: 4,
  REMOTE_PORT: 5,
  START_MS: 6,
  ZCOPY: 7,
  COUNTS: 8,
  CONTAINER_USER: 20,
} as const
export const LOCAL_AT = 192
export const REMOTE_AT = 256
export const ADDRESS_SIZE = 64

/** The counters of a stream, as offsets from `ROW.COUNTS`. */
export const BYTES_IN = 0
export const BYTES_OUT = 1
export const BYTES_BUFFERED = 2
export const BYTES_TAKEN = 3
export const PEER_TAKEN = 4
export const PEER_WINDOW = 5
export const BYTES_FETCHED = 6
export const PEER_FETCHED = 7
export const BYTES_WAITING = 8
export const STREAM_STATE = 9
export const DATAGRAMS = 10
export const DROPPED = 11
export const COUNTS_LENGTH = 12

/** Which directions of a stream have ended; together they are its state. */
export const ENDED_HERE = 1
export const ENDED_BY_PEER = 2

/** The counters of a listener, at the same place. */
export const ACCEPTED_FAST = 0
export const ACCEPTED_TCP = 1
export const REFUSED_TCP = 2

/**
 * The place of a word is its number on the page; 0 is a row that is free. `tcp` and `udp` are sockets as the kernel has them; `dgram` is
 * one direction of a pair of UDP sockets that has left the kernel: its client sends, its server receives.
 */
export const KINDS = ['free', 'net', 'raw', 'tcp', 'listener', 'udp', 'dgram'] as const
/** Kinds of which the kernel carries the bytes. */
export const KERNEL_KINDS: ReadonlySet<string> = new Set(['tcp', 'udp'])
export const TRANSPORTS = ['', 'shm', 'loopback', 'tcp', 'pipe', 'verbs', 'ethernet', 'udp'] as const
export const ROLES = ['', 'client', 'server'] as const
/** As `ss` calls them: open, ended by this program, by the peer, by both. */
export const STREAM_STATES = ['ESTAB', 'FIN-WAIT', 'CLOSE-WAIT', 'CLOSING'] as const
/**
 * `none`: without a file. `invalid`: the file cannot be used, and nothing is fast. `stale`: the file has changed and cannot be used;
 * the version before is in force.
 */
export const POLICY_STATES = ['none', 'in force', 'invalid', 'stale'] as const
export const LISTENER_STATE = 'LISTEN'
/** Whether large writes may be offered: `refused` by the system or the peer; `off` by the policy of this program. */
export const ZCOPY_STATES = ['possible', 'refused', 'off'] as const
export type ZCopyState = (typeof ZCOPY_STATES)[number]
export type Kind = (typeof KINDS)[number]
