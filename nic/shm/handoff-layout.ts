/**
 * The messages of a shm connection over the abstract unix socket. Little-endian.
 *
 *   address blob of an offer (opaque to all other layers), 40 bytes
 *   +0  'FSSH'   +4  version   +8  socket name, 16 bytes   +24  nonce, 16 bytes
 *
 *   request, connecting side -> offering side, 32 bytes
 *   +0  'FSRQ'   +4  version   +8  nonce, 16 bytes         +24  memory wanted (u32)   +28 zero
 *
 *   answer, offering side -> connecting side, 16 bytes, with one or two descriptors: the memfd of the rings, and with
 *   SEGMENTS one end of a unix connection
 *   +0  'FSAN'   +4  version   +8  ring size (u32)         +12  memory agreed (u32)
 *
 *   ring, either way, for as long as the connection lives: one byte of any value
 *
 *   segment, either way over that other unix connection, 8 bytes, with one descriptor: the memfd of a segment
 *   +0  'FSSG'   +4  index (u32): 0 for the first that this side passes, then 1, and so on
 *
 *   key of a segment, 24 bytes
 *   +0  'FSSK'   +4  access: 1 read, 2 write   +8  length (u64)   +16  index (u32)   +20 zero
 *
 * Bits of memory wanted and memory agreed. A bit is agreed if both sides want it:
 *   1 SEGMENTS        memory of `allocate` may be passed and mapped
 *   2 PROCESS_MEMORY  each may read and write the other's process, as far as the kernel allows (ZCopy)
 */
export const HANDOFF_VERSION = 7

export const BLOB_MAGIC = 0x48535346
export const BLOB_SIZE = 40
export const BLOB_NAME = 8
export const BLOB_NONCE = 24

export const REQUEST_MAGIC = 0x51525346
export const REQUEST_SIZE = 32
export const REQUEST_NONCE = 8
export const REQUEST_MEMORY = 24

export const ANSWER_MAGIC = 0x4e415346
export const ANSWER_SIZE = 16
export const ANSWER_RING_SIZE = 8
export const ANSWER_MEMORY = 12
export const ANSWER_DESCRIPTORS = 2

export const SEGMENTS = 1
export const PROCESS_MEMORY = 2

export const SEGMENT_MAGIC = 0x47535346
export const SEGMENT_SIZE = 8
export const SEGMENT_INDEX = 4

export const KEY_MAGIC = 0x4b535346
export const KEY_SIZE = 24
export const KEY_ACCESS = 4
export const KEY_LENGTH = 8
export const KEY_INDEX = 16
export const KEY_READ = 1
export const KEY_WRITE = 2

export const MAGIC = 0
export const VERSION = 4
export const NONCE_SIZE = 16

/** The full length: Node 20 pads a shorter abstract address with zeros when it listens; later versions do not. */
export const SOCKET_NAME_SIZE = 107

/** The abstract socket's name, without the zero byte that makes it abstract, from the 16 random bytes in a blob. */
export function socketName(bytes: Uint8Array): string {
  return `fastsockets-${Buffer.from(bytes).toString('hex')}`.padEnd(SOCKET_NAME_SIZE, '-')
}

/** The message that comes with a segment's descriptor. */
export function encodeSegment(index: number): Buffer {
  const message = Buffer.alloc(SEGMENT_SIZE)
  message.writeUInt32LE(SEGMENT_MAGIC, MAGIC)
  message.writeUInt32LE(index, SEGMENT_INDEX)
  return message
}

/** The key of a segment; `access` is a sum of KEY_READ and KEY_WRITE. */
export function encodeKey(access: number, length: number, index: number): Buffer {
  const key = Buffer.alloc(KEY_SIZE)
  key.writeUInt32LE(KEY_MAGIC, MAGIC)
  key.writeUInt32LE(access, KEY_ACCESS)
  key.writeBigUInt64LE(BigInt(length), KEY_LENGTH)
  key.writeUInt32LE(index, KEY_INDEX)
  return key
}
