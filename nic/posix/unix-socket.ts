/** Abstract unix sockets that pass descriptors (unix(7), cmsg(3)), without blocking and without Node's help. */
import type net from 'node:net'
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
/** SCM_MAX_FD. Room for all of them: the kernel closes those that find none, and that may wait for their sender. */
export const DESCRIPTORS_MAX = 253
/**
 * What else the kernel adds: credentials, security label, pidfd. Who has made a connection and passed us an end of it can have it
 * say all of that.
 */
const FURTHER_CONTROL_SIZE = 4096
const BYTES = CONTROL + controlSize(DESCRIPTORS_MAX) + FURTHER_CONTROL_SIZE
export const MESSAGE_MAX = 4096

export interface Credentials {
  /** 0 when the peer lives in a pid namespace that we cannot see into. */
  readonly pid: number
  readonly uid: number
}

export interface ReceivedMessage {
  readonly bytes: Buffer
  readonly descriptors: number[]
}

/** Connects at once or not at all: a unix socket never leaves a connect under way. Undefined if too many wait there. */
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

/** Another descriptor of the same connection. */
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
 * From now on peers pass no descriptors over this connection, or over those that this listener accepts (Linux 6.16; before, nobody
 * can be kept from it). Node throws descriptors away that it does not want, and to close the last one of a socket takes
 * its linger time: for so long the event loop would hang.
 */
export function refuseDescriptors(socket: net.Socket | net.Server): void {
  const { fd = -1 } = (socket as unknown as { _handle: { fd?: number } | null })._handle ?? {}
  refuseDescriptorsAt(fd)
}

export function refuseDescriptorsAt(fd: number): void {
  loadLibc().libc?.setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, OFF, OFF.length)
}

/** Whether `fd`, of which nothing is known, is a unix stream socket that does not listen. */
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

/** The user at the other end of a unix socket of Node; without the C library, which alone can ask, our own. */
export function userOfPeer(socket: net.Socket): number {
  const { libc } = loadLibc()
  if (libc === undefined) return process.geteuid?.() ?? 0
  return peerCredentials(libc, (socket as unknown as { _handle: { fd: number } })._handle.fd).uid
}

/** At most `MESSAGE_MAX` bytes and `DESCRIPTORS_MAX` descriptors; all of it, or an error. */
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
 * The next message, at most `length` bytes; undefined if none is there yet. All descriptors that come with it belong to the caller,
 * however many: to close one of a stranger's may wait for the stranger.
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

/** That the peer is gone is its own affair; everything else is a failed system call. */
function connectionError(libc: Libc, syscall: string): NicError {
  const errno = libc.errno()
  if (errno !== ECONNRESET && errno !== EPIPE) return systemError(libc, syscall)
  return new NicError('ERR_NIC_CONNECT_FAILED', 'the peer has gone away', { syscall, errno })
}

/** Those that were passed, wherever they are among what else the kernel says. A pidfd that comes with them is closed: nobody waits for that. */
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
 * The one message under way in this thread: header, vector, control data and bytes. It holds addresses of itself, which
 * the garbage collector does not see: so it is too large to lie in V8's heap, where it could move, and never goes.
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

/** Whether the functions below can do anything: they need the C library. */
export function canMoveNow(): boolean {
  return loadLibc().libc !== undefined
}

/**
 * What a socket of Node has got, without waiting for the event loop: the number of bytes, 0 if the other side has hung
 * up, or a negative errno; `-EAGAIN` if there is nothing.
 */
export function receiveNow(fd: number, into: Uint8Array): number {
  const { libc } = loadLibc()
  return libc === undefined ? -EAGAIN : orErrno(libc, libc.recv(fd, into, into.length, MSG_DONTWAIT))
}

/** Sends what a socket of Node takes at once; the number of bytes, or a negative errno. */
export function sendNow(fd: number, bytes: Uint8Array): number {
  const { libc } = loadLibc()
  if (libc === undefined) return -EAGAIN
  return orErrno(libc, libc.send(fd, bytes, bytes.length, MSG_DONTWAIT | MSG_NOSIGNAL))
}

/** Ends what a socket of Node sends, behind what the kernel has of it. */
export function shutdownNow(fd: number): void {
  loadLibc().libc?.shutdown(fd, SHUT_WR)
}

function orErrno(libc: Libc, result: number): number {
  return result < 0 ? -libc.errno() : result
}
