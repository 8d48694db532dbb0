/**
 * The bytes by which datagrams of `node:dgram` leave the kernel's road for a channel. Little-endian.
 *
 *   CONNECT   sender -> receiver, over the channel (stream-layout.ts), with DATAGRAMS in place of the family: the port is that of
 *             the receiving socket, the address is the secret of this pair, 32 hexadecimal digits
 *   MARKER    sender's UDP socket -> receiver's UDP socket, through the kernel, 25 bytes
 *   +0   magic 'FSDGRAM\0'
 *   +8   the secret, 16 bytes
 *   +24  kind (u8): PROBE or SWITCH
 *
 *   over the stream that the CONNECT has opened, each in a message of its own
 *   LIMIT     receiver -> sender   +0 bytes that the receiver's socket keeps unread at most (u32), at most LIMIT_MAX, or STOP: the
 *             sender is to use the kernel again   +4 what the datagrams have counted that were delivered or dropped (u32, wraps).
 *             The first comes after the PROBE, then one whenever a part of the limit was taken
 *   DATAGRAM  sender -> receiver   +0 length (u32)   +4 the datagram
 *
 * A PROBE that arrives proves three things to the receiver: the sender's socket has the address that the kernel reports with
 * it, the kernel leads from there to this socket, and both belong to this pair. Nothing but a PROBE is ever sent to a socket that has
 * not answered. After the first LIMIT the sender sends SWITCH, and all later datagrams over the stream: the receiver keeps
 * those back until the SWITCH, and with it every earlier datagram, has come out of the kernel's queue.
 */
export const MARKER_MAGIC = Buffer.from('FSDGRAM\0', 'latin1')
export const SECRET_SIZE = 16
export const MARKER_SIZE = 25
const AT_SECRET = 8
const AT_KIND = 24

export const PROBE = 1
export const SWITCH = 2

export const LIMIT_MAX = 64 << 20
export const STOP = 0xffff_ffff

/** A sender may have the limit and one such part under way: it never drops what the receiver has room for. */
export const REPORTS_PER_LIMIT = 4

/** Before a LIMIT's count, or a DATAGRAM's bytes. */
export const HEAD_SIZE = 4
export const COUNT_SIZE = 4
/** The longest datagram: an IPv6 packet without a jumbo payload. */
export const DATAGRAM_MAX = 65_527
/** What a waiting datagram counts beyond its bytes, so that empty ones are bounded, too. */
export const DATAGRAM_OVERHEAD = 64

export function encodeMarker(secret: string, kind: number): Buffer {
  const bytes = Buffer.alloc(MARKER_SIZE)
  MARKER_MAGIC.copy(bytes)
  bytes.write(secret, AT_SECRET, 'hex')
  bytes[AT_KIND] = kind
  return bytes
}

/** Whether a datagram may be a marker. */
export function isMarker(bytes: Buffer): boolean {
  return bytes.length === MARKER_SIZE && MARKER_MAGIC.compare(bytes, 0, AT_SECRET) === 0
}

export function secretOf(marker: Buffer): string {
  return marker.toString('hex', AT_SECRET, AT_KIND)
}

export function kindOf(marker: Buffer): number {
  return marker[AT_KIND] as number
}

/** Whether `text` is a secret as a CONNECT carries it. */
export function isSecret(text: string): boolean {
  return /^[0-9a-f]{32}$/.test(text)
}
