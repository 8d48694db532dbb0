/** Every error that this layer makes, by its stable code. */
export type NicErrorCode =
  /** The driver cannot work on this machine (platform, library, permission). */
  | 'ERR_NIC_UNAVAILABLE'
  /** A system call failed; `syscall` and `errno` say which and how. */
  | 'ERR_NIC_SYSTEM'
  /** An address blob is not one that this driver made. */
  | 'ERR_NIC_BAD_ADDRESS'
  /** The peer is somebody whom this side does not accept. */
  | 'ERR_NIC_PEER_REFUSED'
  /** The peer did not finish connecting in time, or went away while connecting. */
  | 'ERR_NIC_CONNECT_FAILED'
  /** The peer wrote something into shared memory or onto the wire that the protocol does not allow. */
  | 'ERR_NIC_PROTOCOL_VIOLATION'
  /** Nothing was heard of the peer for too long while something waited for its acknowledgement. */
  | 'ERR_NIC_PEER_LOST'
  /** The caller's argument can never be right. */
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
