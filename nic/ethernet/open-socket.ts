/** Opens packet sockets: by this program's own right, or by that of the helper `fastsockets nic open`. */
import {
  AF_PACKET,
  AF_UNIX,
  ECONNREFUSED,
  EPERM,
  EPROTO,
  ETIMEDOUT,
  POLLIN,
  SO_ATTACH_FILTER,
  SO_DOMAIN,
  SO_LOCK_FILTER,
  SOCK_CLOEXEC,
  SOCK_NONBLOCK,
  SOCK_RAW,
  SOCK_STREAM,
  SOL_SOCKET,
} from '../posix/constants.ts'
import type { Libc } from '../posix/libc.ts'
import { isOwnUser } from '../posix/own-user.ts'
import { pathAddress, peerCredentials, receiveMessage, sendMessage } from '../posix/unix-socket.ts'
import { ETHERNET_SIZE } from './frame-layout.ts'
import { ANSWER_SIZE, decodeAnswer, encodeRequest } from './opening-layout.ts'

/** Where the helper listens. */
export const HELPER_VARIABLE = 'FASTSOCKETS_NIC'
/** The helper answers within a millisecond; on a busy machine this thread waits for so long. */
const ANSWER_MS_MAX = 1000
/** struct sock_fprog: number of instructions u16, and their address. */
const PROGRAM_SIZE = 16
/** struct sock_filter of classic BPF: code u16, jumps if true and if false u8, constant u32. */
const INSTRUCTION_SIZE = 8
const LOAD_WORD = 0x20
const JUMP_IF_EQUAL = 0x15
const RETURN = 0x06
const WHOLE_FRAME = 0x40000

/**
 * A packet socket that will receive frames of that ID only, and none before it is bound. The caller owns the descriptor;
 * a negative errno if the kernel, or the helper, refuses.
 */
export function openPacketSocket(libc: Libc, id: Buffer): number {
  const own = openOwn(libc, id)
  const { [HELPER_VARIABLE]: helper } = process.env
  return own === -EPERM && helper ? askHelper(libc, helper, id) : own
}

/** The same by this program's own right. */
export function openOwn(libc: Libc, id: Buffer): number {
  const fd = libc.socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
  if (fd < 0 || attachFilter(libc, fd, id)) return fd < 0 ? -libc.errno() : fd
  return closeAfter(libc, fd)
}

/** From now on not even the owner of the descriptor can change its filter. */
export function lockFilter(libc: Libc, fd: number): boolean {
  const on = Buffer.alloc(4)
  on.writeInt32LE(1)
  return libc.setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, on, on.length) === 0
}

function attachFilter(libc: Libc, fd: number, id: Buffer): boolean {
  const code = Buffer.from(new ArrayBuffer(6 * INSTRUCTION_SIZE))
  const put = (at: number, operation: number, ifFalse: number, constant: number): void => {
    code.writeUInt16LE(operation, at * INSTRUCTION_SIZE)
    code.writeUInt8(ifFalse, at * INSTRUCTION_SIZE + 3)
    code.writeUInt32LE(constant, at * INSTRUCTION_SIZE + 4)
  }
  put(0, LOAD_WORD, 0, ETHERNET_SIZE)
  put(1, JUMP_IF_EQUAL, 3, id.readUInt32BE(0))
  put(2, LOAD_WORD, 0, ETHERNET_SIZE + 4)
  put(3, JUMP_IF_EQUAL, 1, id.readUInt32BE(4))
  put(4, RETURN, 0, WHOLE_FRAME)
  put(5, RETURN, 0, 0)
  const program = Buffer.alloc(PROGRAM_SIZE)
  program.writeUInt16LE(code.length / INSTRUCTION_SIZE, 0)
  program.writeBigUInt64LE(libc.address(code), 8)
  return libc.setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, program, program.length) === 0
}

function askHelper(libc: Libc, path: string, id: Buffer): number {
  const connection = libc.socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
  if (connection < 0) return -libc.errno()
  try {
    const address = pathAddress(path)
    if (libc.connect(connection, address, address.length) < 0) return -libc.errno()
    // Another user could pass a descriptor of any kind.
    const { uid } = peerCredentials(libc, connection)
    if (uid !== 0 && !isOwnUser(uid)) return -EPERM
    sendMessage(libc, connection, encodeRequest(id), [])
    return receiveSocket(libc, connection)
  } catch {
    return -ECONNREFUSED
  } finally {
    libc.close(connection)
  }
}

function receiveSocket(libc: Libc, connection: number): number {
  const polled = Buffer.alloc(8)
  polled.writeInt32LE(connection, 0)
  polled.writeInt16LE(POLLIN, 4)
  if (libc.poll(polled, 1, ANSWER_MS_MAX) <= 0) return -ETIMEDOUT
  const { bytes, descriptors } = receiveMessage(libc, connection, ANSWER_SIZE) ?? {}
  const [fd = -1, ...others] = descriptors ?? []
  for (const other of others) libc.close(other)
  const errno = bytes === undefined ? undefined : decodeAnswer(bytes)
  if (errno === 0 && fd >= 0 && domainOf(libc, fd) === AF_PACKET) return fd
  if (fd >= 0) libc.close(fd)
  return errno ? -errno : -EPROTO
}

function domainOf(libc: Libc, fd: number): number {
  const value = Buffer.alloc(4)
  const length = Buffer.alloc(4)
  length.writeInt32LE(value.length)
  return libc.getsockopt(fd, SOL_SOCKET, SO_DOMAIN, value, length) < 0 ? -1 : value.readInt32LE()
}

function closeAfter(libc: Libc, fd: number): number {
  const errno = libc.errno()
  libc.close(fd)
  return -errno
}
