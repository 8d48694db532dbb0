/**
 * Messages in a byte stream: what each side of a connection of message sockets sends. All numbers are little-endian.
 *
 *   once, before the first message          then, for each message
 *   +0  'FSMS'                              +0  length of the payload, 0 to MESSAGE_MAX
 *   +4  version, 1                          +4  payload
 *
 * The head and the payload of a message of at most `EAGER_MAX` bytes fit into the smallest receive window: such a message
 * leaves its sender whether or not a receive is posted. A longer one may wait for a receive.
 */
import { SHRUNK_WINDOW } from '../stream/stream-layout.ts'

export const PREAMBLE_MAGIC = 0x534d5346
export const PREAMBLE_VERSION = 1
export const PREAMBLE_SIZE = 8
export const HEAD_SIZE = 4
/** Longest message. A receiver keeps one that its program has not received yet: see `KEPT_MAX`. */
export const MESSAGE_MAX = 16 << 20
export const EAGER_MAX = SHRUNK_WINDOW - HEAD_SIZE
/** Bytes of messages that a socket keeps in memory of its own until they are received. */
export const KEPT_MAX = 2 * MESSAGE_MAX

/** What comes before the payload of a message; `isFirst`: with the preamble. */
export function encodeHead(length: number, isFirst: boolean): Buffer {
  const at = isFirst ? PREAMBLE_SIZE : 0
  const head = Buffer.allocUnsafeSlow(at + HEAD_SIZE)
  if (isFirst) {
    head.writeUInt32LE(PREAMBLE_MAGIC, 0)
    head.writeUInt32LE(PREAMBLE_VERSION, 4)
  }
  head.writeUInt32LE(length, at)
  return head
}
