/**
 * Asks the kernel how many UDP sockets of this network namespace have a port (sock_diag(7), linux/inet_diag.h). The kernel looks
 * through its table: /proc/net/udp would take a second for the sockets that one other user may have.
 */
import {
  AF_INET,
  AF_INET6,
  AF_NETLINK,
  IPPROTO_UDP,
  MSG_DONTWAIT,
  NETLINK_SOCK_DIAG,
  SOCK_CLOEXEC,
  SOCK_DGRAM,
} from './constants.ts'
import { type Libc, loadLibc } from './libc.ts'

/*
 * Request: as in tcp-sockets.ts, with no addresses and no cookie. Answers: messages, each from a multiple of 4 on.
 *
 *     0 length (u32)   4 type (u16)
 *
 * SOCK_DIAG_BY_FAMILY is one socket; NLMSG_DONE ends the list; NLMSG_ERROR refuses the request.
 */
const REQUEST_SIZE = 72
const SOCK_DIAG_BY_FAMILY = 20
const NLMSG_DONE = 3
const NLM_F_REQUEST = 1
const NLM_F_DUMP = 0x300
const ALL_STATES = 0xffffffff
const HEADER_SIZE = 16
const ANSWER_SIZE_MAX = 16 * 1024

/** 0, 1, or 2 for more. Undefined if the kernel does not say. */
export function countUdpSockets(port: number): number | undefined {
  const { libc } = loadLibc()
  if (libc === undefined) return undefined
  const fd = libc.socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)
  if (fd < 0) return undefined
  try {
    const v4 = countOfFamily(libc, fd, AF_INET, port)
    if (v4 === undefined || v4 > 1) return v4
    const v6 = countOfFamily(libc, fd, AF_INET6, port)
    return v6 === undefined ? undefined : Math.min(v4 + v6, 2)
  } finally {
    libc.close(fd)
  }
}

function countOfFamily(libc: Libc, fd: number, family: number, port: number): number | undefined {
  const request = Buffer.alloc(REQUEST_SIZE)
  request.writeUInt32LE(REQUEST_SIZE, 0)
  request.writeUInt16LE(SOCK_DIAG_BY_FAMILY, 4)
  request.writeUInt16LE(NLM_F_REQUEST | NLM_F_DUMP, 6)
  request.writeUInt8(family, 16)
  request.writeUInt8(IPPROTO_UDP, 17)
  request.writeUInt32LE(ALL_STATES, 20)
  request.writeUInt16BE(port, 24)
  if (libc.send(fd, request, REQUEST_SIZE, MSG_DONTWAIT) !== REQUEST_SIZE) return undefined
  const answer = Buffer.alloc(ANSWER_SIZE_MAX)
  let count = 0
  // Two are enough. The rest of the list ends with the descriptor.
  while (count < 2) {
    const length = libc.recv(fd, answer, answer.length, MSG_DONTWAIT)
    if (length < HEADER_SIZE) return undefined
    for (let at = 0; at + HEADER_SIZE <= length; at += (answer.readUInt32LE(at) + 3) & ~3) {
      if (answer.readUInt32LE(at) < HEADER_SIZE) return undefined
      const type = answer.readUInt16LE(at + 4)
      if (type === NLMSG_DONE) return count
      if (type !== SOCK_DIAG_BY_FAMILY) return undefined
      count++
    }
  }
  return 2
}
