/** The stable codes of all errors of this layer. */
export type NicErrorCode =
  /** The driver cannot work on this machine (platform, library, permission). */
  | 'ERR_NIC_UNAVAILABLE'
  /** A system call failed: see `syscall` and `errno`. */
  | 'ERR_NIC_SYSTEM'
  /** An address blob that this driver did not make. */
  | 'ERR_NIC_BAD_ADDRESS'
  /** One side does not accept the other: its user, or its key. */
  | 'ERR_NIC_PEER_REFUSED'
  /** Between hosts both sides need a shared key, and this side has none that may be used. */
  | 'ERR_NIC_KEY'
  /** The peer did not finish connecting in time, or went away while connecting. */
  | 'ERR_NIC_CONNECT_FAILED'
  /** The peer wrote bytes into shared memory or onto the wire that the protocol does not allow. */
  | 'ERR_NIC_PROTOCOL_VIOLATION'
  /** The peer's process ended, or its kernel reset the connection, without the goodbye of a closing interface. */
  | 'ERR_NIC_PEER_RESET'
  /** The peer's host does not answer: nothing arrived within its timeout while frames were unacknowledged. */
  | 'ERR_NIC_PEER_LOST'
  /** The network device of the connection is gone, or carries shorter frames than when the connection was made. */
  | 'ERR_NIC_DEVICE'
  /** The caller passed an invalid argument. */
  | 'ERR_NIC_ARGUMENT'

export class NicError extends Error {
  readonly code: NicErrorCode
  readonly syscall: string | undefined
  readonly errno: number | undefined

  constructor(code: NicErrorCode, message: string, details: { syscall?: string; errno?: number } = {}) {
    super(message)
    this.name = 'NicError'
    this.code = code
    this.syscall = details.syscall
    this.errno = details.errno
  }
}
