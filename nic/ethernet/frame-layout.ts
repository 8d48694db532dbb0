/**
 * One frame on the wire: the Ethernet header, ours of 32 bytes, and the content. Ours is little-endian.
 *
 *   +0   destination (6), source (6), EtherType 0x88B5 (big-endian): IEEE 802, "local experimental"
 *   +14  ID      8 bytes: number of the interface that shall receive; its kernel matches it (packet-socket.ts)
 *   +22  TAG     8 bytes, of all that follows (frame-tag.ts)
 *   +30  NONCE   u64: one more for each frame of the sender, from 1 on; high word at most 2^21 - 1
 *   +38  LENGTH  u32: bytes of content
 *   +42  KIND    u32
 *   +46  content, padded with zeros to a multiple of 32
 *
 *   FRAME   content for the layer above
 *   HELLO   as long as the longest frame: asks whether such frames arrive
 *   ANSWER  no content: a HELLO has arrived
 *
 * In memory a frame begins 2 bytes behind a multiple of 16, in both queues, so that ours begins at one.
 */
export const ETHERTYPE = 0x88b5
export const MAC_SIZE = 6
export const ETHERNET_SIZE = 14
export const ETHERNET_AT = 2
export const AT_SOURCE = 6
export const AT_ETHERTYPE = 12

export const ID_SIZE = 8
export const HEADER_SIZE = 32
export const ID_WORD = 0
export const TAG_WORD = 2
export const NONCE_WORD = 4
export const LENGTH_WORD = 6
export const KIND_WORD = 7
export const CONTENT_WORD = 8
/** All that follows is authenticated. */
export const AUTHENTIC_WORD = NONCE_WORD

export const KIND_FRAME = 1
export const KIND_HELLO = 2
export const KIND_ANSWER = 3

/** Longest MTU that is used: no longer frames cross a switch, and a receive descriptor has room for one. */
export const MTU_MAX = 9000
/** IPv4's smallest, RFC 791: a device with less is none of Ethernet's. */
export const MTU_MIN = 576

/** Longest content of a frame. */
export function frameMaxOf(mtu: number): number {
  return (Math.min(mtu, MTU_MAX) - HEADER_SIZE) & ~31
}

export function padded(length: number): number {
  return (length + 31) & ~31
}
