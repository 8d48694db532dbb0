/**
 * Questions to the kernel about sockets of this network namespace (sock_diag(7)): what is the same for each family.
 *
 * Request: struct nlmsghdr, then that of the family. Numbers are little-endian.
 *
 *     0 length (u32)   4 type (u16)   6 flags (u16)   8 sequence, port id (zero)   16 family (u8)   20 states (u32)
 *
 * Answer: struct nlmsghdr, that of the family, then attributes: 0 length (u16)   2 type (u16)   4 value, up to the next multiple of 4
 */
import { AF_NETLINK, MSG_DONTWAIT, NETLINK_SOCK_DIAG, SOCK_CLOEXEC, SOCK_DGRAM } from './constants.ts'
import { type Libc, loadLibc } from './libc.ts'

export const SOCK_DIAG_BY_FAMILY = 20
/** Fills the 8 bytes of a cookie that asks for no socket in particular. */
export const NO_COOKIE = 0xff
const NLM_F_REQUEST = 1
const ALL_STATES = 0xffffffff

export function newRequest(size: number, family: number, flags = 0): Buffer {
  const request = Buffer.alloc(size)
  request.writeUInt32LE(size, 0)
  request.writeUInt16LE(SOCK_DIAG_BY_FAMILY, 4)
  request.writeUInt16LE(NLM_F_REQUEST | flags, 6)
  request.writeUInt8(family, 16)
  request.writeUInt32LE(ALL_STATES, 20)
  return request
}

/** What `ask` returns, given a connection to the kernel; undefined if there is none. */
export function askKernel<T>(ask: (libc: Libc, fd: number) => T): T | undefined {
  const { libc } = loadLibc()
  if (libc === undefined) return undefined
  const fd = libc.socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)
  if (fd < 0) return undefined
  try {
    return ask(libc, fd)
  } finally {
    libc.close(fd)
  }
}

/** The answer about one socket; undefined if the kernel finds none. */
export function askForSocket(request: Buffer, sizeMin: number, sizeMax: number): Buffer | undefined {
  return askKernel((libc, fd) => {
    // The kernel answers within send(2).
    if (libc.send(fd, request, request.length, MSG_DONTWAIT) !== request.length) return undefined
    const answer = Buffer.alloc(sizeMax)
    const length = libc.recv(fd, answer, answer.length, MSG_DONTWAIT)
    const isAnswer = length >= sizeMin && answer.readUInt16LE(4) === SOCK_DIAG_BY_FAMILY
    return isAnswer ? answer.subarray(0, length) : undefined
  })
}

/** The value of the first attribute of this type, of at least `sizeMin` bytes. Attributes begin at `at`. */
export function findAttribute(answer: Buffer, at: number, type: number, sizeMin: number): Buffer | undefined {
  for (let next = at; next + 4 <= answer.length; ) {
    const length = answer.readUInt16LE(next)
    const value = answer.subarray(next + 4, next + length)
    if (answer.readUInt16LE(next + 2) === type && value.length >= sizeMin) return value
    next += Math.max(4, (length + 3) & ~3)
  }
  return undefined
}
