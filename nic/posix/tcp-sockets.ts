/**
 * Asks the kernel for one TCP socket of this network namespace (sock_diag(7), linux/inet_diag.h). It finds the socket by
 * its hash: the answer takes the same time however many sockets other users have open.
 */
import {
  AF_INET,
  AF_INET6,
  AF_NETLINK,
  IPPROTO_TCP,
  MSG_DONTWAIT,
  NETLINK_SOCK_DIAG,
  SOCK_CLOEXEC,
  SOCK_DGRAM,
} from './constants.ts'
import { loadLibc } from './libc.ts'
import { isMapped, MAPPED, mappedAddress } from './socket-address.ts'

/*
 * Request: struct nlmsghdr, struct inet_diag_req_v2. Ports and addresses are in network order.
 *
 *     0 length (u32)   4 type (u16)   6 flags (u16)   8 sequence, port id (zero)
 *    16 family (u8)   17 protocol (u8)   18 extensions (u8)   19 padding (zero)   20 states (u32)
 *    24 local port (u16)   26 remote port (u16)   28 local address (16)   44 remote address (16)   60 device (zero)   64 cookie (8)
 *
 * Answer: struct nlmsghdr, struct inet_diag_msg.
 *
 *    16 family (u8)   17 state (u8)   18 timers   20 ports, addresses and cookie as in the request, from 24 on
 *    68 expiry   72 receive queue   76 send queue   80 effective user id of its owner (u32)   84 inode
 *    88 attributes, each: 0 length (u16)   2 type (u16)   4 its value, up to the next multiple of 4
 *
 * The attribute INET_DIAG_INFO is struct tcp_info: 128 bytes received (u64)   144 not sent (u32)   200 sent (u64)   208 of them, sent again (u64)
 */
const REQUEST_SIZE = 72
const SOCK_DIAG_BY_FAMILY = 20
const NLM_F_REQUEST = 1
const ALL_STATES = 0xffffffff
const NO_COOKIE = 0xff
const ANSWER_SIZE_MIN = 88
const ANSWER_SIZE_MAX = 1024
const AT_STATE = 17
const AT_USER = 80
const AT_INODE = 84
const AT_ATTRIBUTES = 88
const INET_DIAG_INFO = 2
/** The request has a bit for each attribute, from 1 on. */
const WITH_INFO = 1 << (INET_DIAG_INFO - 1)
const INFO_RECEIVED = 128
const INFO_NOT_SENT = 144
const INFO_SENT = 200
const INFO_SENT_AGAIN = 208
const INFO_SIZE_MIN = 216

export const TCP_ESTABLISHED = 1
export const TCP_LISTEN = 10

const ANY: TcpEnd = { address: '0.0.0.0', port: 0 }

export interface TcpEnd {
  readonly address: string
  readonly port: number
}

export interface TcpSocketInfo {
  /** `TCP_ESTABLISHED`, `TCP_LISTEN`, or another number of linux/tcp_states.h. */
  readonly state: number
  readonly uid: number
  /** As in the links below /proc/PID/fd; 0 once no process has it. */
  readonly inode: number
  /** Bytes that its program was given, or may read, and that it has written; undefined of a listener, and if the kernel does not say (before Linux 4.19). */
  readonly bytes: { readonly in: number; readonly out: number } | undefined
}

/**
 * The socket at `local` that is connected to `remote`. If none is, or without `remote`: the listener that would get a
 * connection to `local`. Undefined if there is neither, or the kernel does not say.
 */
export function findTcpSocket(local: TcpEnd, remote: TcpEnd = ANY): TcpSocketInfo | undefined {
  const { libc } = loadLibc()
  if (libc === undefined) return undefined
  const fd = libc.socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG)
  if (fd < 0) return undefined
  const request = encodeRequest(local, remote)
  const answer = Buffer.alloc(ANSWER_SIZE_MAX)
  // The kernel answers within send(2).
  const isSent = libc.send(fd, request, request.length, MSG_DONTWAIT) === request.length
  const length = isSent ? libc.recv(fd, answer, answer.length, MSG_DONTWAIT) : -1
  libc.close(fd)
  if (length < ANSWER_SIZE_MIN || answer.readUInt16LE(4) !== SOCK_DIAG_BY_FAMILY) return undefined
  const bytes = bytesIn(answer.subarray(0, length))
  const [uid, inode] = [answer.readUInt32LE(AT_USER), answer.readUInt32LE(AT_INODE)]
  return { state: answer.readUInt8(AT_STATE), uid, inode, bytes }
}

function bytesIn(answer: Buffer): TcpSocketInfo['bytes'] {
  for (let at = AT_ATTRIBUTES; at + 4 <= answer.length; ) {
    const length = answer.readUInt16LE(at)
    const info = answer.subarray(at + 4, at + length)
    if (answer.readUInt16LE(at + 2) === INET_DIAG_INFO && info.length >= INFO_SIZE_MIN) {
      const sent = Number(info.readBigUInt64LE(INFO_SENT) - info.readBigUInt64LE(INFO_SENT_AGAIN))
      return { in: Number(info.readBigUInt64LE(INFO_RECEIVED)), out: sent + info.readUInt32LE(INFO_NOT_SENT) }
    }
    at += Math.max(4, (length + 3) & ~3)
  }
  return undefined
}

function encodeRequest(local: TcpEnd, remote: TcpEnd): Buffer {
  const request = Buffer.alloc(REQUEST_SIZE)
  const localBytes = bytesOf(local.address)
  request.writeUInt32LE(REQUEST_SIZE, 0)
  request.writeUInt16LE(SOCK_DIAG_BY_FAMILY, 4)
  request.writeUInt16LE(NLM_F_REQUEST, 6)
  request.writeUInt8(localBytes.length === 4 ? AF_INET : AF_INET6, 16)
  request.writeUInt8(IPPROTO_TCP, 17)
  request.writeUInt8(WITH_INFO, 18)
  request.writeUInt32LE(ALL_STATES, 20)
  request.writeUInt16BE(local.port, 24)
  request.writeUInt16BE(remote.port, 26)
  request.set(localBytes, 28)
  request.set(bytesOf(remote.address), 44)
  request.fill(NO_COOKIE, 64)
  return request
}

/** In network order. The kernel finds connections of IPv4 by addresses of IPv4, also where a socket of IPv6 has one end. */
function bytesOf(address: string): Buffer {
  const bytes = mappedAddress(address)
  return isMapped(bytes) ? bytes.subarray(MAPPED.length) : bytes
}
