/**
 * Asks the kernel for one TCP socket of this network namespace (sock_diag(7), linux/inet_diag.h). It finds the socket by
 * its hash: the answer takes the same time however many sockets other users have open.
 */
import { AF_INET, AF_INET6, IPPROTO_TCP } from './constants.ts'
import { askForSocket, findAttribute, NO_COOKIE, newRequest } from './sock-diag.ts'
import { isMapped, MAPPED, mappedAddress } from './socket-address.ts'

/*
 * Request: struct inet_diag_req_v2. Ports and addresses are in network order.
 *
 *    17 protocol (u8)   18 extensions (u8)   19 padding (zero)
 *    24 local port (u16)   26 remote port (u16)   28 local address (16)   44 remote address (16)   60 device (zero)   64 cookie (8)
 *
 * Answer: struct inet_diag_msg.
 *
 *    16 family (u8)   17 state (u8)   18 timers   20 ports, addresses and cookie as in the request, from 24 on
 *    68 expiry   72 receive queue   76 send queue   80 effective user id of its owner (u32)   84 inode   88 attributes
 *
 * The attribute INET_DIAG_INFO is struct tcp_info: 128 bytes received (u64)   144 not sent (u32)   200 sent (u64)   208 of them, sent again (u64)
 */
const REQUEST_SIZE = 72
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
  const answer = askForSocket(encodeRequest(local, remote), ANSWER_SIZE_MIN, ANSWER_SIZE_MAX)
  if (answer === undefined) return undefined
  const [uid, inode] = [answer.readUInt32LE(AT_USER), answer.readUInt32LE(AT_INODE)]
  return { state: answer.readUInt8(AT_STATE), uid, inode, bytes: bytesIn(answer) }
}

function bytesIn(answer: Buffer): TcpSocketInfo['bytes'] {
  const info = findAttribute(answer, AT_ATTRIBUTES, INET_DIAG_INFO, INFO_SIZE_MIN)
  if (info === undefined) return undefined
  const sent = Number(info.readBigUInt64LE(INFO_SENT) - info.readBigUInt64LE(INFO_SENT_AGAIN))
  return { in: Number(info.readBigUInt64LE(INFO_RECEIVED)), out: sent + info.readUInt32LE(INFO_NOT_SENT) }
}

function encodeRequest(local: TcpEnd, remote: TcpEnd): Buffer {
  const localBytes = bytesOf(local.address)
  const request = newRequest(REQUEST_SIZE, localBytes.length === 4 ? AF_INET : AF_INET6)
  request.writeUInt8(IPPROTO_TCP, 17)
  request.writeUInt8(WITH_INFO, 18)
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
