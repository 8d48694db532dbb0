/**
 * What the two sides of a shm connection say to each other over the abstract unix socket. Little-endian.
 *
 *   address blob of an offer (opaque to everybody else), 40 bytes
 *   +0  'FSSH'   +4  version   +8  socket name, 16 bytes   +24  nonce, 16 bytes
 *
 *   request, connecting side -> offering side, 32 bytes
 *   +0  'FSRQ'   +4  version   +8  nonce, 16 bytes         +24  probe address (u64)
 *
 *   answer, offering side -> connecting side, 24 bytes, with one descriptor: the segment's memfd
 *   +0  'FSAN'   +4  version   +8  ring size (u32)   +12 zero   +16  probe address (u64)
 *
 *   ring, either way, for as long as the connection lives: one byte of any value
 *
 * The probe address is where the sender keeps a known word (PROBE_VALUE): reading it through process_vm_readv shows
 * whether one-sided access is allowed, and that the pid from SO_PEERCRED is the peer.
 */
export const HANDOFF_VERSION = 5

export const BLOB_MAGIC = 0x48535346
export const BLOB_SIZE = 40
export const BLOB_NAME = 8
export const BLOB_NONCE = 24

export const REQUEST_MAGIC = 0x51525346
export const REQUEST_SIZE = 32
export const REQUEST_NONCE = 8
export const REQUEST_PROBE = 24

export const ANSWER_MAGIC = 0x4e415346
export const ANSWER_SIZE = 24
export const ANSWER_RING_SIZE = 8
export const ANSWER_PROBE = 16
export const ANSWER_DESCRIPTORS = 1

export const MAGIC = 0
export const VERSION = 4
export const NONCE_SIZE = 16

/** Of full length: Node 20 fills a shorter abstract address up with zeros when it listens, later ones do not. */
export const SOCKET_NAME_SIZE = 107

/** The abstract socket's name, without the zero byte that makes it abstract, from the 16 random bytes in a blob. */
export function socketName(bytes: Uint8Array): string {
  return `fastsockets-${Buffer.from(bytes).toString('hex')}`.padEnd(SOCKET_NAME_SIZE, '-')
}
