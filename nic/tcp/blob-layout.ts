/**
 * The blob of an offer, which the caller carries to the connecting side. 64 bytes, little-endian.
 *
 *   +0   magic 'FSTB'     +4   queue size of each direction (u32)
 *   +8   port at 127.0.0.1, or 0 if the connecting side knows an address (u16)     +10  zero, 6 bytes
 *   +16  id of the offer, 16 bytes     +32  secret of the offer, 32 bytes
 */
import { isRingSize } from '../ring/ring-layout.ts'
import { OFFER_SIZE } from './handshake-layout.ts'

export const SECRET_SIZE = 32
const BLOB_SIZE = 64
const MAGIC = 0x42545346
const AT_QUEUE_SIZE = 4
const AT_PORT = 8
const AT_ZERO = 10
const AT_ID = 16
const AT_SECRET = 32

export interface Blob {
  readonly queueSize: number
  readonly port: number
  readonly id: Buffer
  readonly secret: Buffer
}

export function encodeBlob({ queueSize, port, id, secret }: Blob): Buffer {
  const bytes = Buffer.alloc(BLOB_SIZE)
  bytes.writeUInt32LE(MAGIC, 0)
  bytes.writeUInt32LE(queueSize, AT_QUEUE_SIZE)
  bytes.writeUInt16LE(port, AT_PORT)
  id.copy(bytes, AT_ID)
  secret.copy(bytes, AT_SECRET)
  return bytes
}

/** Undefined if the bytes are no such blob: a stranger may have sent them. */
export function decodeBlob(given: Uint8Array): Blob | undefined {
  const bytes = Buffer.from(given)
  if (bytes.length !== BLOB_SIZE || bytes.readUInt32LE(0) !== MAGIC) return undefined
  if (bytes.subarray(AT_ZERO, AT_ID).some(byte => byte !== 0)) return undefined
  const queueSize = bytes.readUInt32LE(AT_QUEUE_SIZE)
  if (!isRingSize(queueSize)) return undefined
  return {
    queueSize,
    port: bytes.readUInt16LE(AT_PORT),
    id: bytes.subarray(AT_ID, AT_ID + OFFER_SIZE),
    secret: bytes.subarray(AT_SECRET),
  }
}
