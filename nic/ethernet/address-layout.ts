/**
 * What the two sides say of themselves: the blob of the offer, and the reply of the connecting side. 64 bytes,
 * little-endian.
 *
 *   +0   magic 'FSE2' (offer) or 'FSR2' (reply)     +4   size of the offering side's receive queue (u32)
 *   +8   MTU of the side's device (u32)             +12  its hardware address, 6 bytes     +18  zero, 2 bytes
 *   +20  ID of the side's interface, 8 bytes        +28  zero, 4 bytes
 *   +32  random, 32 bytes: both sides' make the keys of this connection (keysOf in ethernet-driver.ts)
 */
import { isRingSize } from '../ring/ring-layout.ts'
import { ID_SIZE, MAC_SIZE, MTU_MIN } from './frame-layout.ts'

export const OFFER_MAGIC = 0x3245_5346
export const REPLY_MAGIC = 0x3252_5346
export const RANDOM_SIZE = 32
const ADDRESS_SIZE = 64
const AT_QUEUE_SIZE = 4
const AT_MTU = 8
const AT_MAC = 12
const AT_ZERO = 18
const AT_ID = 20
const AT_ZEROS = 28
const AT_RANDOM = 32
const MTU_LIMIT = 1 << 17

export interface EndAddress {
  readonly queueSize: number
  readonly mtu: number
  readonly mac: Buffer
  readonly id: Buffer
  readonly random: Buffer
}

export function encodeAddress(magic: number, { queueSize, mtu, mac, id, random }: EndAddress): Buffer {
  const bytes = Buffer.alloc(ADDRESS_SIZE)
  bytes.writeUInt32LE(magic, 0)
  bytes.writeUInt32LE(queueSize, AT_QUEUE_SIZE)
  bytes.writeUInt32LE(mtu, AT_MTU)
  mac.copy(bytes, AT_MAC)
  id.copy(bytes, AT_ID)
  random.copy(bytes, AT_RANDOM)
  return bytes
}

/** Undefined if the bytes are no such address: a stranger may have sent them. */
export function decodeAddress(magic: number, given: Uint8Array): EndAddress | undefined {
  const bytes = Buffer.from(given)
  if (bytes.length !== ADDRESS_SIZE || bytes.readUInt32LE(0) !== magic) return undefined
  const isZero = (from: number, to: number): boolean => bytes.subarray(from, to).every(byte => byte === 0)
  if (!isZero(AT_ZERO, AT_ID) || !isZero(AT_ZEROS, AT_RANDOM)) return undefined
  const queueSize = bytes.readUInt32LE(AT_QUEUE_SIZE)
  const mtu = bytes.readUInt32LE(AT_MTU)
  if (!isRingSize(queueSize) || mtu < MTU_MIN || mtu > MTU_LIMIT) return undefined
  return {
    queueSize,
    mtu,
    mac: bytes.subarray(AT_MAC, AT_MAC + MAC_SIZE),
    id: bytes.subarray(AT_ID, AT_ID + ID_SIZE),
    random: bytes.subarray(AT_RANDOM),
  }
}
