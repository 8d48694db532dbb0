/**
 * One-sided access to another process of this host: process_vm_readv(2), process_vm_writev(2). Only for ZCopy, if both
 * sides asked for it (peer-process.ts): such a call blocks until the kernel has paged in the owner's memory.
 *
 *   key of registered memory, 40 bytes, little-endian
 *   +0   'FSMK'      +4  access: 1 read, 2 write      +8  address (u64)      +16  length (u64)      +24  zero
 *   +28  generation  +32 address of the owner's generation word (u64), or 0
 *
 * The kernel allows the access even after the owner has reused the memory. So each revocable registration has a
 * generation word in the owner's memory, which the owner increments to revoke. A reader reads the word after the
 * bytes, in the same call: if it equals the generation in the key, the bytes were valid. A writer reads the word
 * before it writes; the owner may still revoke between the two calls.
 */
import { atomics } from '../atomics.ts'
import { NicError } from '../errors.ts'
import type { Access, Registration, RemoteMemory } from '../nic.ts'
import type { Libc } from '../posix/libc.ts'

const KEY_MAGIC = 0x4b4d5346
const KEY_SIZE = 40
const KEY_ACCESS = 4
const KEY_ADDRESS = 8
const KEY_LENGTH = 16
const KEY_GENERATION = 28
const KEY_GENERATION_AT = 32
const ADDRESS_MAX = 2n ** 64n - 1n
const READ = 1
const WRITE = 2

// struct iovec: base 0, length 8. One vector for the bytes, one for the generation; calls in a thread do not overlap.
const VECTOR_SIZE = 16
const LOCAL = Buffer.alloc(2 * VECTOR_SIZE)
const REMOTE = Buffer.alloc(2 * VECTOR_SIZE)
const WORD_SIZE = 4
/** The peer's generation word as last read. An explicit ArrayBuffer lies outside V8's heap, so its address stays. */
const word = new Int32Array(new ArrayBuffer(WORD_SIZE))
let wordAt: bigint | undefined

/** Keeps registered memory from being collected until `deregister`. */
const registered = new Set<Registration>()

/** Revocable registrations of this thread at a time; more are refused. */
const GENERATIONS_MAX = 4096
/** Generation words, one for each slot. Peers read them by address, so they are never freed. */
const generations = new Int32Array(new ArrayBuffer(WORD_SIZE * GENERATIONS_MAX))
let generationsAt: bigint | undefined
const freeSlots: number[] = []
let slotCount = 0
const NO_SLOT = -1

export interface ProcessMemory extends RemoteMemory {
  readonly address: bigint
  readonly generation: number
  /** Address of the generation word in the peer; 0 if the memory is not revocable. */
  readonly generationAt: bigint
}

export class ProcessRegistration implements Registration {
  readonly bytes: Uint8Array
  readonly access: Access
  readonly key: Uint8Array
  readonly address: bigint
  #slot: number

  constructor(libc: Libc, bytes: Uint8Array, access: Access) {
    this.bytes = bytes
    this.access = access
    this.address = libc.address(bytes)
    this.#slot = access.isRevocable ? acquireSlot() : NO_SLOT
    const key = Buffer.alloc(KEY_SIZE)
    key.writeUInt32LE(KEY_MAGIC, 0)
    key.writeUInt32LE((access.remoteRead ? READ : 0) | (access.remoteWrite ? WRITE : 0), KEY_ACCESS)
    key.writeBigUInt64LE(this.address, KEY_ADDRESS)
    key.writeBigUInt64LE(BigInt(bytes.length), KEY_LENGTH)
    if (this.#slot !== NO_SLOT) {
      generationsAt ??= libc.address(bytesOf(generations))
      key.writeInt32LE(atomics.load(generations, this.#slot), KEY_GENERATION)
      key.writeBigUInt64LE(generationsAt + BigInt(WORD_SIZE * this.#slot), KEY_GENERATION_AT)
    }
    this.key = key
    registered.add(this)
  }

  revoke(): boolean {
    if (this.#slot === NO_SLOT) return false
    atomics.add(generations, this.#slot, 1)
    return true
  }

  deregister(): void {
    if (!registered.delete(this) || this.#slot === NO_SLOT) return
    this.revoke()
    freeSlots.push(this.#slot)
    this.#slot = NO_SLOT
  }
}

function acquireSlot(): number {
  const slot = freeSlots.pop() ?? slotCount
  if (slot === GENERATIONS_MAX)
    throw new NicError('ERR_NIC_UNAVAILABLE', `${GENERATIONS_MAX} revocable registrations are there already`)
  if (slot === slotCount) slotCount++
  return slot
}

function bytesOf(words: Int32Array): Uint8Array {
  return new Uint8Array(words.buffer as ArrayBuffer)
}

export function importProcessKey(view: Buffer): ProcessMemory {
  if (view.length !== KEY_SIZE || view.readUInt32LE(0) !== KEY_MAGIC) {
    throw new NicError('ERR_NIC_ARGUMENT', 'this is not a key of process memory')
  }
  const access = view.readUInt32LE(KEY_ACCESS)
  const address = view.readBigUInt64LE(KEY_ADDRESS)
  const length = view.readBigUInt64LE(KEY_LENGTH)
  if (length > BigInt(Number.MAX_SAFE_INTEGER) || address + length > ADDRESS_MAX) {
    throw new NicError('ERR_NIC_ARGUMENT', 'the key is of no region that memory could have')
  }
  return {
    address,
    length: Number(length),
    generation: view.readInt32LE(KEY_GENERATION),
    generationAt: view.readBigUInt64LE(KEY_GENERATION_AT),
    access: { remoteRead: (access & READ) !== 0, remoteWrite: (access & WRITE) !== 0 },
  }
}

/** Reads `length` bytes of process `pid` into local memory. Returns the number of bytes read, or -1. */
export function readProcess(libc: Libc, pid: number, local: bigint, remote: bigint, length: number): number {
  setVectors(0, local, remote, length)
  return libc.process_vm_readv(pid, LOCAL, 1, REMOTE, 1, 0)
}

export function writeProcess(libc: Libc, pid: number, local: bigint, remote: bigint, length: number): number {
  setVectors(0, local, remote, length)
  return libc.process_vm_writev(pid, LOCAL, 1, REMOTE, 1, 0)
}

/** Reads `length` bytes to `local`. False if the read failed or the owner has revoked: the bytes are invalid then. */
export function readMemory(
  libc: Libc,
  pid: number,
  local: bigint,
  memory: ProcessMemory,
  offset: number,
  length: number,
): boolean {
  const from = memory.address + BigInt(offset)
  if (memory.generationAt === 0n) return readProcess(libc, pid, local, from, length) === length
  setVectors(0, local, from, length)
  setVectors(1, ownWord(libc), memory.generationAt, WORD_SIZE)
  const moved = libc.process_vm_readv(pid, LOCAL, 2, REMOTE, 2, 0)
  return moved === length + WORD_SIZE && word[0] === memory.generation
}

/** Writes `length` bytes from `local`. False if the write failed or the owner has revoked. */
export function writeMemory(
  libc: Libc,
  pid: number,
  local: bigint,
  memory: ProcessMemory,
  offset: number,
  length: number,
): boolean {
  if (memory.generationAt !== 0n) {
    const moved = readProcess(libc, pid, ownWord(libc), memory.generationAt, WORD_SIZE)
    if (moved !== WORD_SIZE || word[0] !== memory.generation) return false
  }
  return writeProcess(libc, pid, local, memory.address + BigInt(offset), length) === length
}

function ownWord(libc: Libc): bigint {
  wordAt ??= libc.address(bytesOf(word))
  return wordAt
}

function setVectors(index: number, local: bigint, remote: bigint, length: number): void {
  const at = VECTOR_SIZE * index
  const size = BigInt(length)
  LOCAL.writeBigUInt64LE(local, at)
  LOCAL.writeBigUInt64LE(size, at + 8)
  REMOTE.writeBigUInt64LE(remote, at)
  REMOTE.writeBigUInt64LE(size, at + 8)
}
