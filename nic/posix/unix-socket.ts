/** Abstract unix sockets that pass descriptors (unix(7), cmsg(3)), without blocking and without Node's help. */
import type * as net from 'node:net'
import { NicError } from '../errors.ts'
import {
  AF_UNIX,
  EAGAIN,
  ECONNRESET,
  EINTR,
  EPIPE,
  F_DUPFD_CLOEXEC,
  MSG_CMSG_CLOEXEC,
  MSG_DONTWAIT,
  MSG_NOSIGNAL,
  SCM_PIDFD,
  SCM_RIGHTS,
  SHUT_WR,
  SO_ACCEPTCONN,
  SO_DOMAIN,
  SO_PASSRIGHTS,
  SO_PEERCRED,
  SO_TYPE,
  SOCK_CLOEXEC,
  SOCK_NONBLOCK,
  SOCK_STREAM,
  SOL_SOCKET,
} from './constants.ts'
import { type Libc, loadLibc, systemError } from './libc.ts'

const OFF = Buffer.alloc(4)
const SOCKET_TYPE = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC

// struct msghdr, 64-bit: name 0, namelen 8, iov 16, iovlen 24, control 32, controllen 40, flags 48; 56 bytes.
const MSGHDR_IOV = 16
const MSGHDR_IOV_COUNT = 24
const MSGHDR_CONTROL = 32
const MSGHDR_CONTROL_LENGTH = 40
// struct iovec: base 0, length 8; 16 bytes.
const VECTOR = 64
// struct cmsghdr: len 0, level 8, type 12, then the descriptors.
const CONTROL = VECTOR + 16
const CMSG_HEADER_SIZE = 16
/** SCM_MAX_FD. Room for all: the kernel closes descriptors that find no room, and a close may wait for the sender. */
export const DESCRIPTORS_MAX = 253
/**
 * Room for credentials, security label and pidfd. A peer that made a connection and passed us one end of it may have
 * enabled all of them (SO_PASSCRED, SO_PASSSEC, SO_PASSPIDFD).
 */
const FURTHER_CONTROL_SIZE = 4096
const BYTES = CONTROL + controlSize(DESCRIPTORS_MAX) + FURTHER_CONTROL_SIZE
export const MESSAGE_MAX = 4096

export interface Credentials {
  /** 0 if the peer lives in a pid namespace that is invisible from ours. */
  readonly pid: number
  readonly uid: number
}

export interface ReceivedMessage {
  readonly bytes: Buffer
  readonly descriptors: number[]
}

/**
 * Connects without waiting: a unix connect is never under way. Undefined if the listener's backlog is full (EAGAIN).
 */
export function connectAbstract(libc: Libc, name: string): number | undefined {
  const fd = libc.socket(AF_UNIX, SOCKET_TYPE, 0)
  if (fd < 0) throw systemError(libc, 'socket')
  const address = abstractAddress(name)
  if (libc.connect(fd, address, address.length) < 0) {
    const error = systemError(libc, 'connect')
    libc.close(fd)
    if (error.errno === EAGAIN) return undefined
    throw error
  }
  return fd
}

/** Another descriptor of the same connection. The caller owns it. */
export function duplicate(libc: Libc, fd: number): number {
  const copy = libc.fcntl(fd, F_DUPFD_CLOEXEC, 0)
  if (copy < 0) throw systemError(libc, 'fcntl')
  return copy
}

export function peerCredentials(libc: Libc, fd: number): Credentials {
  const value = Buffer.alloc(12)
  const length = Buffer.alloc(4)
  length.writeInt32LE(value.length)
  if (libc.getsockopt(fd, SOL_SOCKET, SO_PEERCRED, value, length) < 0) throw systemError(libc, 'getsockopt')
  return { pid: value.readInt32LE(0), uid: value.readUInt32LE(4) }
}

/**
 * Makes the kernel refuse descriptors that peers pass over this connection, or over connections that this listener
 * accepts. Needs Linux 6.16; does nothing on older kernels. Node closes descriptors that arrive unexpected, and the
 * close of a socket's last descriptor blocks the event loop for the linger time that the peer has set.
 */
export function refuseDescriptors(socket: net.Socket | net.Server): void {
  const { fd = -1 } = (socket as unknown as { _handle: { fd?: number } | null })._handle ?? {}
  refuseDescriptorsAt(fd)
}

export function refuseDescriptorsAt(fd: number): void {
  loadLibc().libc?.setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, OFF, OFF.length)
}

/** Whether `fd`, a descriptor of any kind, is a unix stream socket that does not listen. */
export function isUnixStream(libc: Libc, fd: number): boolean {
  return (
    optionOf(libc, fd, SO_DOMAIN) === AF_UNIX &&
    optionOf(libc, fd, SO_TYPE) === SOCK_STREAM &&
    optionOf(libc, fd, SO_ACCEPTCONN) === 0
  )
}

function optionOf(libc: Libc, fd: number, name: number): number {
  const value = Buffer.alloc(4)
  const length = Buffer.alloc(4)
  length.writeInt32LE(value.length)
  return libc.getsockopt(fd, SOL_SOCKET, name, value, length) < 0 ? -1 : value.readInt32LE()
}

/** The user at the other end of a unix socket of Node; our own user if there is no C library to ask the kernel. */
export function userOfPeer(socket: net.Socket): number {
  const { libc } = loadLibc()
  if (libc === undefined) return process.geteuid?.() ?? 0
  return peerCredentials(libc, (socket as unknown as { _handle: { fd: number } })._handle.fd).uid
}

/** Sends at most `MESSAGE_MAX` bytes with at most `DESCRIPTORS_MAX` descriptors. Throws unless all of it was sent. */
export function sendMessage(libc: Libc, fd: number, bytes: Uint8Array, descriptors: readonly number[]): void {
  if (descriptors.length > DESCRIPTORS_MAX)
    throw new NicError('ERR_NIC_ARGUMENT', `${descriptors.length} descriptors are too many`)
  const message = prepareMessage(libc, bytes.length, controlSize(descriptors.length))
  message.set(bytes, BYTES)
  if (descriptors.length > 0) {
    message.writeBigUInt64LE(BigInt(CMSG_HEADER_SIZE + 4 * descriptors.length), CONTROL)
    message.writeInt32LE(SOL_SOCKET, CONTROL + 8)
    message.writeInt32LE(SCM_RIGHTS, CONTROL + 12)
    descriptors.forEach((descriptor, i) => {
      message.writeInt32LE(descriptor, CONTROL + CMSG_HEADER_SIZE + 4 * i)
    })
  }
  const sent = libc.sendmsg(fd, message, MSG_DONTWAIT | MSG_NOSIGNAL)
  if (sent < 0) throw connectionError(libc, 'sendmsg')
  if (sent !== bytes.length) throw new NicError('ERR_NIC_CONNECT_FAILED', 'sendmsg sent a part')
}

/**
 * The next message, at most `length` bytes; undefined if none has arrived. The caller owns all descriptors in it, even
 * unexpected ones: closing a stranger's descriptor may block, so the caller decides.
 */
export function receiveMessage(libc: Libc, fd: number, length: number): ReceivedMessage | undefined {
  const message = prepareMessage(libc, length, BYTES - CONTROL)
  const received = libc.recvmsg(fd, message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)
  if (received < 0) {
    const errno = libc.errno()
    if (errno === EAGAIN || errno === EINTR) return undefined
    throw connectionError(libc, 'recvmsg')
  }
  const descriptors = readDescriptors(libc, message, Number(message.readBigUInt64LE(MSGHDR_CONTROL_LENGTH)))
  return { bytes: Buffer.from(message.subarray(BYTES, BYTES + received)), descriptors }
}

/** `ERR_NIC_CONNECT_FAILED` if the peer has gone; otherwise `ERR_NIC_SYSTEM`. */
function connectionError(libc: Libc, syscall: string): NicError {
  const errno = libc.errno()
  if (errno !== ECONNRESET && errno !== EPIPE) return systemError(libc, syscall)
  return new NicError('ERR_NIC_CONNECT_FAILED', 'the peer has gone away', { syscall, errno })
}

/** The passed descriptors, at any place among the control messages. Closes pidfds, which never blocks. */
function readDescriptors(libc: Libc, message: Buffer, controlLength: number): number[] {
  const descriptors: number[] = []
  const end = CONTROL + controlLength
  for (let header = CONTROL; header + CMSG_HEADER_SIZE <= end; ) {
    const length = Number(message.readBigUInt64LE(header))
    const isOfSockets = message.readInt32LE(header + 8) === SOL_SOCKET
    const type = message.readInt32LE(header + 12)
    for (let at = header + CMSG_HEADER_SIZE; isOfSockets && at + 4 <= header + length; at += 4) {
      if (type === SCM_RIGHTS) descriptors.push(message.readInt32LE(at))
      else if (type === SCM_PIDFD) libc.close(message.readInt32LE(at))
    }
    header += Math.max(CMSG_HEADER_SIZE, 8 * Math.ceil(length / 8))
  }
  return descriptors
}

/**
 * The message buffer of this thread: header, vector, control data and bytes. It contains its own addresses, which the
 * garbage collector does not update. So it has an ArrayBuffer outside V8's heap, which does not move, and is never
 * freed.
 */
let underWay: { readonly message: Buffer; readonly address: bigint } | undefined

function prepareMessage(libc: Libc, length: number, controlLength: number): Buffer {
  if (length > MESSAGE_MAX) throw new NicError('ERR_NIC_ARGUMENT', `${length} bytes are too many`)
  if (underWay === undefined) {
    const message = Buffer.from(new ArrayBuffer(BYTES + MESSAGE_MAX))
    underWay = { message, address: libc.address(message) }
  }
  const { message, address } = underWay
  message.fill(0, 0, BYTES)
  message.writeBigUInt64LE(address + BigInt(VECTOR), MSGHDR_IOV)
  message.writeBigUInt64LE(1n, MSGHDR_IOV_COUNT)
  message.writeBigUInt64LE(address + BigInt(BYTES), VECTOR)
  message.writeBigUInt64LE(BigInt(length), VECTOR + 8)
  if (controlLength > 0) {
    message.writeBigUInt64LE(address + BigInt(CONTROL), MSGHDR_CONTROL)
    message.writeBigUInt64LE(BigInt(controlLength), MSGHDR_CONTROL_LENGTH)
  }
  return message
}

function controlSize(descriptorCount: number): number {
  return descriptorCount === 0 ? 0 : CMSG_HEADER_SIZE + 8 * Math.ceil(descriptorCount / 2)
}

/** struct sockaddr_un with an abstract name: family, a zero byte, the name. */
export function abstractAddress(name: string): Buffer {
  const address = Buffer.alloc(2 + 1 + Buffer.byteLength(name))
  address.writeUInt16LE(AF_UNIX, 0)
  address.write(name, 3)
  return address
}

/** struct sockaddr_un with a path: family, the path, a zero byte. */
export function pathAddress(path: string): Buffer {
  const address = Buffer.alloc(2 + Buffer.byteLength(path) + 1)
  address.writeUInt16LE(AF_UNIX, 0)
  address.write(path, 2)
  return address
}

/** Whether `receiveNow`, `sendNow` and `shutdownNow` work: they need the C library. */
export function canMoveNow(): boolean {
  return loadLibc().libc !== undefined
}

/**
 * Reads from a socket of Node without waiting for the event loop. Returns the number of bytes, 0 at the end of the
 * stream, or a negative errno; `-EAGAIN` if nothing has arrived.
 */
export function receiveNow(fd: number, into: Uint8Array): number {
  const { libc } = loadLibc()
  return libc === undefined ? -EAGAIN : orErrno(libc, libc.recv(fd, into, into.length, MSG_DONTWAIT))
}

/** Sends as many bytes as the kernel accepts without waiting. Returns their number, or a negative errno. */
export function sendNow(fd: number, bytes: Uint8Array): number {
  const { libc } = loadLibc()
  if (libc === undefined) return -EAGAIN
  return orErrno(libc, libc.send(fd, bytes, bytes.length, MSG_DONTWAIT | MSG_NOSIGNAL))
}

/** Half-closes a socket of Node: FIN follows the bytes in the kernel's send queue. */
export function shutdownNow(fd: number): void {
  loadLibc().libc?.shutdown(fd, SHUT_WR)
}

function orErrno(libc: Libc, result: number): number {
  return result < 0 ? -libc.errno() : result
}
