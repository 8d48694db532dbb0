/** Asks the kernel for the other end of a connection over a unix path (sock_diag(7), linux/unix_diag.h). */
import {
  AF_NETLINK,
  AF_UNIX,
  MSG_DONTWAIT,
  NETLINK_SOCK_DIAG,
  SOCK_CLOEXEC,
  SOCK_DGRAM,
} from './constants.ts'
import { loadLibc } from './libc.ts'

/*
 * Request: struct nlmsghdr, struct unix_diag_req.
 *
 *     0 length (u32)   4 type (u16)   6 flags (u16)   8 sequence, port id (zero)
 *    16 family (u8)   17 protocol, padding (zero)   20 states (u32)   24 inode (u32)   28 what to show (u32)   32 cookie (8)
 *
 * Answer: struct nlmsghdr, struct unix_diag_msg.
 *
 *    16 family, type, state, padding (u8 each)   20 inode (u32)   24 cookie (8)
 *    32 attributes, each: 0 length (u16)   2 type (u16)   4 its value, up to the next multiple of 4
 *
 * The value of UNIX_DIAG_PEER is the inode of the other end (u32).
 */
const REQUEST_SIZE = 40
const SOCK_DIAG_BY_FAMILY = 20
const NLM_F_REQUEST = 1
const ALL_STATES = 0xffffffff
const UDIAG_SHOW_PEER = 4
const UNIX_DIAG_PEER = 2
const NO_COOKIE = 0xff
const AT_ATTRIBUTES = 32
const ATTRIBUTE_SIZE = 8
const ANSWER_SIZE_MAX = 256

/**
 * The inode of the socket to which the one with `inode`, of this network namespace, is connected. Undefined if there is none, or
 * the kernel does not say.
 */
export function peerInode(inode: number): number | undefined {
  const { libc } = loadLibc()
  if (libc === undefined) return undefined
  const fd = libc.socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)
  if (fd < 0) return undefined
  const request = Buffer.alloc(REQUEST_SIZE)
  request.writeUInt32LE(REQUEST_SIZE, 0)
  request.writeUInt16LE(SOCK_DIAG_BY_FAMILY, 4)
  request.writeUInt16LE(NLM_F_REQUEST, 6)
  request.writeUInt8(AF_UNIX, 16)
  request.writeUInt32LE(ALL_STATES, 20)
  request.writeUInt32LE(inode, 24)
  request.writeUInt32LE(UDIAG_SHOW_PEER, 28)
  request.fill(NO_COOKIE, 32)
  const answer = Buffer.alloc(ANSWER_SIZE_MAX)
  // The kernel answers within send(2).
  const isSent = libc.send(fd, request, request.length, MSG_DONTWAIT) === request.length
  const length = isSent ? libc.recv(fd, answer, answer.length, MSG_DONTWAIT) : -1
  libc.close(fd)
  if (length < AT_ATTRIBUTES || answer.readUInt16LE(4) !== SOCK_DIAG_BY_FAMILY) return undefined
  return peerIn(answer.subarray(0, length))
}

function peerIn(answer: Buffer): number | undefined {
  for (let at = AT_ATTRIBUTES; at + ATTRIBUTE_SIZE <= answer.length; ) {
    if (answer.readUInt16LE(at + 2) === UNIX_DIAG_PEER) return answer.readUInt32LE(at + 4) || undefined
    at += Math.max(4, (answer.readUInt16LE(at) + 3) & ~3)
  }
  return undefined
}
