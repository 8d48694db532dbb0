/**
 * What the two ends exchange before their queue pairs can be connected: the blob of an offer ('FSVB') and the
 * connecting side's reply ('FSVR'), 80 bytes each, little-endian.
 *
 *   +0   magic      +4   version (u32)     +8   nonce of the offer, 16 bytes
 *   +24  queue pair number (u32)           +28  first packet sequence number (u32)
 *   +32  GID, 16 bytes                     +48  LID (u16)     +50  MTU (u8)     +51  link layer (u8)
 *   +52  ring size (u32)                   +56  receives that the other end may use up (u32)
 *   +60  key of the slab's first part (u32)      +64  its address (u64)     +72  zero, 8 bytes
 *
 *   An iWARP device, whose link layer is 3 here, has as its GID its IP address (IPv4 mapped), and in place of the packet sequence
 *   number, in a blob, the port at which its connection manager is called.
 */
import { areReceives, isRingSize } from './frame-layout.ts'
import { GID_SIZE, LINK_ETHERNET, LINK_INFINIBAND, MTU_MAX, MTU_MIN } from './library-layout.ts'

export const ADDRESS_VERSION = 2
export const ADDRESS_SIZE = 80
export const NONCE_SIZE = 16
/** Beside the values of enum ibv_port_attr's link_layer. */
export const LINK_IWARP = 3
export const BLOB_MAGIC = 0x42565346
export const REPLY_MAGIC = 0x52565346

const AT_VERSION = 4
const AT_NONCE = 8
const AT_NUMBER = 24
const AT_PSN = 28
const AT_GID = 32
const AT_LID = 48
const AT_MTU = 50
const AT_LINK_LAYER = 51
const AT_RING_SIZE = 52
const AT_RECEIVES = 56
const AT_RKEY = 60
const AT_ADDRESS = 64

/** Queue pair numbers and packet sequence numbers have 24 bits. */
const NUMBER_MAX = 0xff_ffff

export interface EndAddress {
  readonly nonce: Buffer
  readonly number: number
  readonly psn: number
  readonly gid: Buffer
  readonly lid: number
  readonly mtu: number
  readonly linkLayer: number
  readonly ringSize: number
  readonly receives: number
  readonly rkey: number
  readonly address: number
}

export function encodeAddress(magic: number, end: EndAddress): Buffer {
  const bytes = Buffer.alloc(ADDRESS_SIZE)
  bytes.writeUInt32LE(magic, 0)
  bytes.writeUInt32LE(ADDRESS_VERSION, AT_VERSION)
  end.nonce.copy(bytes, AT_NONCE)
  bytes.writeUInt32LE(end.number, AT_NUMBER)
  bytes.writeUInt32LE(end.psn, AT_PSN)
  end.gid.copy(bytes, AT_GID)
  bytes.writeUInt16LE(end.lid, AT_LID)
  bytes.writeUInt8(end.mtu, AT_MTU)
  bytes.writeUInt8(end.linkLayer, AT_LINK_LAYER)
  bytes.writeUInt32LE(end.ringSize, AT_RING_SIZE)
  bytes.writeUInt32LE(end.receives, AT_RECEIVES)
  bytes.writeUInt32LE(end.rkey, AT_RKEY)
  bytes.writeBigUInt64LE(BigInt(end.address), AT_ADDRESS)
  return bytes
}

/** Undefined if the bytes are no such address, or hold impossible values. */
export function decodeAddress(magic: number, given: Uint8Array): EndAddress | undefined {
  const bytes = Buffer.from(given)
  if (
    bytes.length !== ADDRESS_SIZE ||
    bytes.readUInt32LE(0) !== magic ||
    bytes.readUInt32LE(AT_VERSION) !== ADDRESS_VERSION
  ) {
    return undefined
  }
  const end: EndAddress = {
    nonce: bytes.subarray(AT_NONCE, AT_NONCE + NONCE_SIZE),
    number: bytes.readUInt32LE(AT_NUMBER),
    psn: bytes.readUInt32LE(AT_PSN),
    gid: bytes.subarray(AT_GID, AT_GID + GID_SIZE),
    lid: bytes.readUInt16LE(AT_LID),
    mtu: bytes.readUInt8(AT_MTU),
    linkLayer: bytes.readUInt8(AT_LINK_LAYER),
    ringSize: bytes.readUInt32LE(AT_RING_SIZE),
    receives: bytes.readUInt32LE(AT_RECEIVES),
    rkey: bytes.readUInt32LE(AT_RKEY),
    address: Number(bytes.readBigUInt64LE(AT_ADDRESS)),
  }
  return isSane(end) ? end : undefined
}

function isSane(end: EndAddress): boolean {
  return (
    end.number <= NUMBER_MAX &&
    end.psn <= NUMBER_MAX &&
    end.mtu >= MTU_MIN &&
    end.mtu <= MTU_MAX &&
    (end.linkLayer === LINK_ETHERNET || end.linkLayer === LINK_INFINIBAND || end.linkLayer === LINK_IWARP) &&
    isRingSize(end.ringSize) &&
    areReceives(end.receives) &&
    Number.isSafeInteger(end.address + 2 * end.ringSize)
  )
}
