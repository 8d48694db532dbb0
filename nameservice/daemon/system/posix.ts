/**
 * Functions of Linux that Node lacks: the identity of a unix socket's peer, refusal of passed descriptors, and
 * datagrams to the service manager. Only this file loads koffi; without koffi it has a reason instead.
 */
import { createRequire } from 'node:module'
import type { Server, Socket } from 'node:net'

type Koffi = typeof import('koffi')

export interface PeerCredentials {
  readonly pid: number
  readonly uid: number
}

export interface Posix {
  /**
   * SO_PEERCRED: credentials that the kernel noted when the peer connected. Undefined if the socket is closed
   * already.
   */
  peerCredentials(socket: Socket): PeerCredentials | undefined
  /**
   * From now on peers cannot pass descriptors over connections that `server` accepts (Linux 6.16; older kernels
   * cannot refuse them). Node closes passed descriptors, and closing the last one of a socket may take its linger
   * time.
   */
  refuseDescriptors(server: Server): void
  /** Sends one datagram to a unix socket; a path that begins with `@` is an abstract name. False if the send failed. */
  sendDatagram(path: string, text: string): boolean
}

export type PosixResult =
  | { readonly posix: Posix; readonly reason?: undefined }
  | { readonly posix?: undefined; readonly reason: string }

// From the kernel's uapi headers; the same on x64 and arm64.
const SOL_SOCKET = 1
const SO_PEERCRED = 17
const SO_PASSRIGHTS = 83
const OFF = Buffer.alloc(4)
const AF_UNIX = 1
const SOCK_DGRAM = 2
const SOCK_CLOEXEC = 0o2000000
const MSG_NOSIGNAL = 0x4000
const SUN_PATH_SIZE = 108
/** struct ucred: pid, uid, gid. */
const UCRED_SIZE = 12

interface Libc {
  getsockopt(fd: number, level: number, name: number, value: Uint8Array, length: Uint32Array): number
  setsockopt(fd: number, level: number, name: number, value: Uint8Array, size: number): number
  socket(domain: number, type: number, protocol: number): number
  sendto(fd: number, bytes: Uint8Array, length: number, flags: number, to: Uint8Array, size: number): number
  close(fd: number): number
}

const PROTOTYPES = {
  getsockopt: 'int getsockopt(int fd, int level, int name, void *value, void *length)',
  setsockopt: 'int setsockopt(int fd, int level, int name, const void *value, unsigned int size)',
  socket: 'int socket(int domain, int type, int protocol)',
  sendto: 'int64_t sendto(int fd, const void *bytes, size_t n, int flags, const void *to, unsigned int size)',
  close: 'int close(int fd)',
} as const

let result: PosixResult | undefined

export function loadPosix(): PosixResult {
  result ??= load()
  return result
}

function load(): PosixResult {
  if (process.platform !== 'linux') return { reason: `this is ${process.platform}, not Linux` }
  try {
    const koffi = createRequire(import.meta.url)('koffi') as Koffi
    const library = koffi.load(null)
    const functions = Object.entries(PROTOTYPES).map(([name, prototype]) => [name, library.func(prototype)])
    const libc = Object.fromEntries(functions) as unknown as Libc
    return {
      posix: {
        peerCredentials: socket => peerCredentials(libc, socket),
        refuseDescriptors: server => refuseDescriptors(libc, server),
        sendDatagram: (path, text) => sendDatagram(libc, path, text),
      },
    }
  } catch {
    return { reason: 'the koffi package cannot be loaded' }
  }
}

function peerCredentials(libc: Libc, socket: Socket): PeerCredentials | undefined {
  const fd = descriptorOf(socket)
  if (fd < 0) return undefined
  const credentials = Buffer.alloc(UCRED_SIZE)
  const length = new Uint32Array([UCRED_SIZE])
  if (libc.getsockopt(fd, SOL_SOCKET, SO_PEERCRED, credentials, length) !== 0) return undefined
  if (length[0] !== UCRED_SIZE) return undefined
  return { pid: credentials.readInt32LE(0), uid: credentials.readUInt32LE(4) }
}

function refuseDescriptors(libc: Libc, server: Server): void {
  libc.setsockopt(descriptorOf(server), SOL_SOCKET, SO_PASSRIGHTS, OFF, OFF.length)
}

/** Not public, but in Node since 0.x; -1 when the socket is closed. */
function descriptorOf(socket: Socket | Server): number {
  return (socket as unknown as { _handle?: { fd?: number } | null })._handle?.fd ?? -1
}

function sendDatagram(libc: Libc, path: string, text: string): boolean {
  const name = Buffer.from(path)
  if (name.length === 0 || name.length >= SUN_PATH_SIZE) return false
  const address = Buffer.alloc(2 + name.length)
  address.writeUInt16LE(AF_UNIX, 0)
  name.copy(address, 2)
  if (path.startsWith('@')) address[2] = 0
  const fd = libc.socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)
  if (fd < 0) return false
  const bytes = Buffer.from(text)
  const sent = libc.sendto(fd, bytes, bytes.length, MSG_NOSIGNAL, address, address.length)
  libc.close(fd)
  return Number(sent) === bytes.length
}
