/**
 * Asks the kernel how many UDP sockets of this network namespace have a port (sock_diag(7), linux/inet_diag.h). The kernel looks
 * through its table: /proc/net/udp would take a second for the sockets that one other user may have.
 */
import { AF_INET, AF_INET6, IPPROTO_UDP, MSG_DONTWAIT } from './constants.ts'
import type { Libc } from './libc.ts'
import { askKernel, newRequest, SOCK_DIAG_BY_FAMILY } from './sock-diag.ts'

/*
 * Request: as in tcp-sockets.ts, with no addresses and no cookie. Answers: messages, each from a multiple of 4 on.
 *
 *     0 length (u32)   4 type (u16)
 *
 * SOCK_DIAG_BY_FAMILY is one socket; NLMSG_DONE ends the list; NLMSG_ERROR refuses the request.
 */
const REQUEST_SIZE = 72
const NLMSG_DONE = 3
const NLM_F_DUMP = 0x300
const HEADER_SIZE = 16
const ANSWER_SIZE_MAX = 16 * 1024

/** 0, 1, or 2 for more. Undefined if the kernel does not say. */
export function countUdpSockets(port: number): number | undefined {
  return askKernel((libc, fd) => {
    const v4 = countOfFamily(libc, fd, AF_INET, port)
    if (v4 === undefined || v4 > 1) return v4
    const v6 = countOfFamily(libc, fd, AF_INET6, port)
    return v6 === undefined ? undefined : Math.min(v4 + v6, 2)
  })
}

function countOfFamily(libc: Libc, fd: number, family: number, port: number): number | undefined {
  const request = newRequest(REQUEST_SIZE, family, NLM_F_DUMP)
  request.writeUInt8(IPPROTO_UDP, 17)
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
