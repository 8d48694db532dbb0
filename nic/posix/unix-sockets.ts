/** Asks the kernel for the other end of a connection over a unix path (sock_diag(7), linux/unix_diag.h). */
import { AF_UNIX } from './constants.ts'
import { askForSocket, findAttribute, NO_COOKIE, newRequest } from './sock-diag.ts'

/*
 * Request: struct unix_diag_req: 17 protocol, padding (zero)   24 inode (u32)   28 what to show (u32)   32 cookie (8)
 * Answer: struct unix_diag_msg: 16 family, type, state, padding (u8 each)   20 inode (u32)   24 cookie (8)   32 attributes
 *
 * The value of UNIX_DIAG_PEER is the inode of the other end (u32).
 */
const REQUEST_SIZE = 40
const UDIAG_SHOW_PEER = 4
const UNIX_DIAG_PEER = 2
const AT_ATTRIBUTES = 32
const ANSWER_SIZE_MAX = 256

/**
 * The inode of the socket to which the one with `inode`, of this network namespace, is connected. Undefined if there is none, or
 * the kernel does not say.
 */
export function peerInode(inode: number): number | undefined {
  const request = newRequest(REQUEST_SIZE, AF_UNIX)
  request.writeUInt32LE(inode, 24)
  request.writeUInt32LE(UDIAG_SHOW_PEER, 28)
  request.fill(NO_COOKIE, 32)
  const answer = askForSocket(request, AT_ATTRIBUTES, ANSWER_SIZE_MAX)
  const peer = answer && findAttribute(answer, AT_ATTRIBUTES, UNIX_DIAG_PEER, 4)
  return peer?.readUInt32LE() || undefined
}
