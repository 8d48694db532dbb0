/**
 * One-sided access to another process of this host: process_vm_readv(2), process_vm_writev(2).
 *
 *   key of registered memory, 32 bytes, little-endian
 *   +0   'FSMK'      +4  access: 1 read, 2 write      +8  address (u64)      +16  length (u64)      +24  owner's pid
 *
 * The kernel decides whether we may (same user, ptrace scope); that is tried once, on connecting, with a probe.
 */
import { NicError } from '../errors.ts'
import type { Access, Registration, RemoteMemory } from '../nic.ts'
import { type Libc, systemError } from '../posix/libc.ts'

const KEY_MAGIC = 0x4b4d5346
const KEY_SIZE = 32
const KEY_ACCESS = 4
const KEY_ADDRESS = 8
const KEY_LENGTH = 16
const KEY_PID = 24
const READ = 1
const WRITE = 2

// struct iovec: base 0, length 8. One of each is enough, because calls do not overlap.
const LOCAL = Buffer.alloc(16)
const REMOTE = Buffer.alloc(16)

export const PROBE_VALUE = 0x46535052

/** Registered memory stays where it is until `deregister`, whoever else has forgotten it. */
const registered = new Set<Registration>()

export interface ProcessRegistration extends Registration {
  readonly address: bigint
}

export interface ProcessMemory extends RemoteMemory {
  readonly address: bigint
}

export function registerMemory(libc: Libc, bytes: Uint8Array, access: Access): ProcessRegistration {
  const address = libc.address(bytes)
  const key = Buffer.alloc(KEY_SIZE)
  key.writeUInt32LE(KEY_MAGIC, 0)
  key.writeUInt32LE((access.remoteRead ? READ : 0) | (access.remoteWrite ? WRITE : 0), KEY_ACCESS)
  key.writeBigUInt64LE(address, KEY_ADDRESS)
  key.writeBigUInt64LE(BigInt(bytes.length), KEY_LENGTH)
  key.writeInt32LE(process.pid, KEY_PID)
  const registration = { bytes, access, key, address, deregister: () => void registered.delete(registration) }
  registered.add(registration)
  return registration
}

export function importProcessKey(key: Uint8Array): ProcessMemory {
  const view = Buffer.from(key.buffer, key.byteOffset, key.byteLength)
  if (view.length !== KEY_SIZE || view.readUInt32LE(0) !== KEY_MAGIC) {
    throw new NicError('ERR_NIC_ARGUMENT', 'this is not a key of shm memory')
  }
  const access = view.readUInt32LE(KEY_ACCESS)
  const length = view.readBigUInt64LE(KEY_LENGTH)
  if (length > BigInt(Number.MAX_SAFE_INTEGER))
    throw new NicError('ERR_NIC_ARGUMENT', 'the key has no sane length')
  return {
    address: view.readBigUInt64LE(KEY_ADDRESS),
    length: Number(length),
    access: { remoteRead: (access & READ) !== 0, remoteWrite: (access & WRITE) !== 0 },
  }
}

/** Moves `length` bytes into local memory; returns how many were moved, or -1. */
export function readProcess(libc: Libc, pid: number, local: bigint, remote: bigint, length: number): number {
  fillVectors(local, remote, length)
  return libc.process_vm_readv(pid, LOCAL, 1, REMOTE, 1, 0)
}

export function writeProcess(libc: Libc, pid: number, local: bigint, remote: bigint, length: number): number {
  fillVectors(local, remote, length)
  return libc.process_vm_writev(pid, LOCAL, 1, REMOTE, 1, 0)
}

/** Why `pid`'s memory cannot be read, or undefined if it can: reads the peer's probe word. */
export function probeProcess(libc: Libc, pid: number, probeAddress: bigint): string | undefined {
  if (pid <= 0) return 'the peer lives in another pid namespace'
  const word = Buffer.alloc(4)
  if (readProcess(libc, pid, libc.address(word), probeAddress, 4) !== 4) {
    return `${systemError(libc, 'process_vm_readv').message} (ptrace scope or a container forbids it)`
  }
  return word.readUInt32LE(0) === PROBE_VALUE ? undefined : 'the pid is not the peer that we talk to'
}

function fillVectors(local: bigint, remote: bigint, length: number): void {
  const size = BigInt(length)
  LOCAL.writeBigUInt64LE(local, 0)
  LOCAL.writeBigUInt64LE(size, 8)
  REMOTE.writeBigUInt64LE(remote, 0)
  REMOTE.writeBigUInt64LE(size, 8)
}
