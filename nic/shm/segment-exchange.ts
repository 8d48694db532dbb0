/**
 * Passes the descriptors of segments between the two ends of a connection, over a unix connection of its own that Node never
 * reads, as it would lose them; and maps what the peer has passed.
 *
 * What comes is a stranger's: any descriptor at all. Only memory that is sealed and as large as its key says is mapped, with
 * the rights of the key and no more. A descriptor that is not memory stays open: to close it might wait for the peer (a FUSE
 * daemon, a socket's linger time). The user who has passed a few of these gets no more connections.
 */
import { NicError } from '../errors.ts'
import type { Access, RemoteMemory } from '../nic.ts'
import { SHUT_RDWR } from '../posix/constants.ts'
import { Doorbell } from '../posix/doorbell.ts'
import type { Libc } from '../posix/libc.ts'
import { type Mapping, mapShared, rangeLengthOf, unmapShared } from '../posix/mapping.ts'
import { assertSealed, isSealable } from '../posix/sealed-memory.ts'
import { receiveMessage, sendMessage } from '../posix/unix-socket.ts'
import { undisturbed } from '../threads/undisturbed.ts'
import {
  KEY_ACCESS,
  KEY_INDEX,
  KEY_LENGTH,
  KEY_MAGIC,
  KEY_READ,
  KEY_SIZE,
  KEY_WRITE,
  MAGIC,
  SEGMENT_INDEX,
  SEGMENT_MAGIC,
  SEGMENT_SIZE,
} from './handoff-layout.ts'
import type { SharedMemory } from './shared-memory.ts'

/** Segments that one end passes to the other, in the life of a connection. */
export const SEGMENTS_PER_PEER_MAX = 64
/** Segments of peers that this thread has mapped at a time, and their bytes. What is beyond them is reached by messages. */
export const SEGMENTS_MAPPED_MAX = 4096
export const SEGMENT_BYTES_MAPPED_MAX = 64 * 1024 ** 3
/** Descriptors that are no memory, of one user: then no more connections with it. */
const STRANGE_MAX = 8

const NO_BYTES = new Uint8Array(0)

let mappedCount = 0
let mappedBytes = 0
/** How many descriptors were left open, by user. */
const strange = new Map<number, number>()
/** Keeps connections that cannot be closed without waiting, perhaps. */
const unclosed = new Set<Doorbell>()

/** Throws if a user has passed too many descriptors that are no memory. */
export function assertPassesMemory(uid: number): void {
  if ((strange.get(uid) ?? 0) >= STRANGE_MAX) {
    throw new NicError('ERR_NIC_PEER_REFUSED', `user ${uid} has passed descriptors that are no memory`)
  }
}

/** Closes what user `uid` has passed, where that cannot wait for anybody. What is no memory stays open. */
export function closePassed(libc: Libc, descriptors: readonly number[], uid: number): void {
  for (const descriptor of descriptors) {
    if (isSealable(libc, descriptor)) libc.close(descriptor)
    else noteStrange(uid)
  }
}

function noteStrange(uid: number): void {
  strange.set(uid, (strange.get(uid) ?? 0) + 1)
}

/** A segment of the peer's, mapped until the connection closes. */
export class MappedSegment implements RemoteMemory {
  readonly length: number
  readonly access: Access
  bytes: Uint8Array
  readonly #mapping: Mapping

  constructor(mapping: Mapping, length: number, access: Access) {
    this.length = length
    this.access = access
    this.bytes = new Uint8Array(mapping.memory, 0, length)
    this.#mapping = mapping
    mappedCount++
    mappedBytes += length
  }

  unmap(libc: Libc): void {
    if (this.bytes === NO_BYTES) return
    this.bytes = NO_BYTES
    mappedCount--
    mappedBytes -= this.length
    unmapShared(libc, this.#mapping)
  }
}

export class SegmentExchange {
  readonly #libc: Libc
  /** Never watched: it only keeps the descriptor, which goes with the thread. */
  readonly #connection: Doorbell
  readonly #peerUid: number
  readonly #passed = new Map<SharedMemory, Buffer>()
  /** By index; undefined where there was no room to map. */
  readonly #mapped: (MappedSegment | undefined)[] = []

  /** Takes over one end of a unix connection. */
  constructor(libc: Libc, fd: number, peerUid: number) {
    this.#libc = libc
    this.#connection = new Doorbell(libc, fd)
    this.#peerUid = peerUid
  }

  /** Passes the memory's descriptor, if the peer does not have it already; returns the key that the peer maps it by. */
  pass(memory: SharedMemory): Buffer {
    const passed = this.#passed.get(memory)
    if (passed !== undefined) return passed
    const index = this.#passed.size
    if (index === SEGMENTS_PER_PEER_MAX) {
      throw new NicError('ERR_NIC_UNAVAILABLE', `the peer has ${SEGMENTS_PER_PEER_MAX} segments already`)
    }
    const message = Buffer.alloc(SEGMENT_SIZE)
    message.writeUInt32LE(SEGMENT_MAGIC, MAGIC)
    message.writeUInt32LE(index, SEGMENT_INDEX)
    sendMessage(this.#libc, this.#connection.fd, message, [memory.fd])
    const key = Buffer.alloc(KEY_SIZE)
    key.writeUInt32LE(KEY_MAGIC, MAGIC)
    key.writeUInt32LE(memory.mayWrite ? KEY_READ | KEY_WRITE : KEY_READ, KEY_ACCESS)
    key.writeBigUInt64LE(BigInt(memory.length), KEY_LENGTH)
    key.writeUInt32LE(index, KEY_INDEX)
    this.#passed.set(memory, key)
    return key
  }

  /** The segment that the peer has passed, by its key. */
  import(key: Buffer): MappedSegment {
    const access = key.readUInt32LE(KEY_ACCESS)
    const length = Number(key.readBigUInt64LE(KEY_LENGTH))
    const index = key.readUInt32LE(KEY_INDEX)
    const mayWrite = access === (KEY_READ | KEY_WRITE)
    if ((access !== KEY_READ && !mayWrite) || length === 0 || !Number.isSafeInteger(length)) {
      throw new NicError('ERR_NIC_ARGUMENT', 'the key is of no segment that there could be')
    }
    if (index === this.#mapped.length && index < SEGMENTS_PER_PEER_MAX) {
      this.#mapped.push(undefined)
      this.#mapped[index] = undisturbed(() => this.#map(index, length, mayWrite))
    }
    const segment = this.#mapped[index]
    if (segment === undefined) throw new NicError('ERR_NIC_UNAVAILABLE', 'the segment is not mapped here')
    if (segment.length !== length || segment.access.remoteWrite !== mayWrite) {
      throw new NicError('ERR_NIC_ARGUMENT', 'the key says something else than the one before')
    }
    return segment
  }

  /** Nothing of the peer's is touched any more. */
  close(): void {
    for (const segment of this.#mapped) segment?.unmap(this.#libc)
    this.#mapped.length = 0
    if (!this.#connection.isOpen) return
    // The kernel would close what is still to be received, and wait for it: so nothing may be left.
    this.#libc.shutdown(this.#connection.fd, SHUT_RDWR)
    if (this.#drain()) return this.#connection.close()
    noteStrange(this.#peerUid)
    unclosed.add(this.#connection)
  }

  #map(index: number, length: number, mayWrite: boolean): MappedSegment | undefined {
    const descriptor = this.#receive(index)
    if (!isSealable(this.#libc, descriptor)) {
      noteStrange(this.#peerUid)
      throw violation('passed a descriptor that is no memory')
    }
    try {
      assertSealed(this.#libc, descriptor, length, mayWrite)
      if (mappedCount >= SEGMENTS_MAPPED_MAX || mappedBytes + length > SEGMENT_BYTES_MAPPED_MAX)
        return undefined
      const mapping = mapShared(this.#libc, descriptor, length, rangeLengthOf(length), mayWrite)
      return new MappedSegment(mapping, length, { remoteRead: true, remoteWrite: mayWrite })
    } finally {
      this.#libc.close(descriptor)
    }
  }

  #receive(index: number): number {
    const message = receiveMessage(this.#libc, this.#connection.fd, SEGMENT_SIZE)
    if (message === undefined) throw violation('passed no descriptor with its key')
    const { bytes, descriptors } = message
    const [descriptor = -1] = descriptors
    const isWhole =
      descriptors.length === 1 &&
      bytes.length === SEGMENT_SIZE &&
      bytes.readUInt32LE(MAGIC) === SEGMENT_MAGIC &&
      bytes.readUInt32LE(SEGMENT_INDEX) === index
    if (isWhole) return descriptor
    closePassed(this.#libc, descriptors, this.#peerUid)
    throw violation('passed something else than the descriptor of its key')
  }

  /** Takes what nobody has asked for; false if there is no end to it. */
  #drain(): boolean {
    for (let i = 0; i <= SEGMENTS_PER_PEER_MAX; i++) {
      try {
        const message = receiveMessage(this.#libc, this.#connection.fd, SEGMENT_SIZE)
        if (message === undefined || message.bytes.length === 0) return true
        closePassed(this.#libc, message.descriptors, this.#peerUid)
      } catch {
        return false
      }
    }
    return false
  }
}

function violation(what: string): NicError {
  return new NicError('ERR_NIC_PROTOCOL_VIOLATION', `the peer ${what}`)
}
