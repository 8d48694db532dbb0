/** Asks the kernel whether a place of this network namespace has a listener, without a connection to it. */
import { closeSync, openSync, readSync } from 'node:fs'
import { isIPv4 } from 'node:net'
import { basename } from 'node:path'
import {
  AF_INET,
  AF_INET6,
  AF_NETLINK,
  MSG_DONTWAIT,
  NETLINK_SOCK_DIAG,
  SOCK_CLOEXEC,
  SOCK_DGRAM,
} from './constants.ts'
import { loadLibc } from './libc.ts'
import { MAPPED, mappedAddress } from './socket-address.ts'

// struct nlmsghdr of 16 bytes: length 0, type 4, flags 6. Then struct inet_diag_req_v2 of 56 bytes: family 16, protocol 17,
// states 20, source port 24 (big-endian), source address 28, cookie 64. sock_diag(7), linux/inet_diag.h.
const REQUEST_SIZE = 72
const SOCK_DIAG_BY_FAMILY = 20
const NLM_F_REQUEST = 1
const NO_COOKIE = 0xff
const IPPROTO_TCP = 6
const ALL_STATES = 0xffffffff
/** In the answer, struct inet_diag_msg. */
const STATE_AT = 17
const TCP_LISTEN = 10

const UNIX_LIST = '/proc/thread-self/net/unix'
const UNIX_LIST_SIZE_MAX = 1 << 20
/** In the column `Flags` of the list: __SO_ACCEPTCON. */
const LISTENS = ' 00010000 '

/** True if a TCP listener of this network namespace would get a connection to the place. False if the kernel does not say. */
export function isTcpListening(address: string, port: number): boolean {
  const { libc } = loadLibc()
  const fd = libc?.socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG) ?? -1
  if (libc === undefined || fd < 0) return false
  const request = Buffer.alloc(REQUEST_SIZE)
  request.writeUInt32LE(REQUEST_SIZE, 0)
  request.writeUInt16LE(SOCK_DIAG_BY_FAMILY, 4)
  request.writeUInt16LE(NLM_F_REQUEST, 6)
  request.writeUInt8(isIPv4(address) ? AF_INET : AF_INET6, 16)
  request.writeUInt8(IPPROTO_TCP, 17)
  request.writeUInt32LE(ALL_STATES, 20)
  request.writeUInt16BE(port, 24)
  request.set(isIPv4(address) ? mappedAddress(address).subarray(MAPPED.length) : mappedAddress(address), 28)
  request.fill(NO_COOKIE, 64)
  const answer = Buffer.alloc(1024)
  // The kernel answers within send(2).
  const length =
    libc.send(fd, request, request.length, MSG_DONTWAIT) < 0
      ? -1
      : libc.recv(fd, answer, answer.length, MSG_DONTWAIT)
  libc.close(fd)
  return (
    length > STATE_AT &&
    answer.readUInt16LE(4) === SOCK_DIAG_BY_FAMILY &&
    answer.readUInt8(STATE_AT) === TCP_LISTEN
  )
}

/**
 * True if a unix listener has a path with the last part of `path`: its program may have bound it by another form of the
 * path. False if the list cannot be read.
 */
export function isUnixListening(path: string): boolean {
  // The kernel shows the zero byte of an abstract name as @.
  const name = basename(path.replaceAll('\0', '@'))
  return listOfUnix()
    .split('\n')
    .some(row => row.includes(LISTENS) && row.endsWith(name))
}

function listOfUnix(): string {
  let file = -1
  try {
    file = openSync(UNIX_LIST, 'r')
    const bytes = Buffer.allocUnsafe(UNIX_LIST_SIZE_MAX)
    let size = 0
    for (let length = -1; length !== 0 && size < bytes.length; size += length)
      length = readSync(file, bytes, size, bytes.length - size, null)
    return bytes.toString('utf8', 0, size)
  } catch {
    return ''
  } finally {
    if (file !== -1) closeSync(file)
  }
}
