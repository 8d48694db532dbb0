/**
 * Passes descriptors of segments between the ends of a connection, and maps the peer's segments. The descriptors have
 * a unix connection of their own. Node never reads from it, because Node would discard them.
 *
 * A peer may pass any descriptor. This side maps only sealed memory of the size in its key, with the rights in the
 * key. A descriptor that is not memory stays open (strange-users.ts).
 */
import { NicError } from '../errors.ts'
import type { Access, RemoteMemory } from '../nic.ts'
import { performance } from '../performance.ts'
import { SHUT_RDWR } from '../posix/constants.ts'
import { Doorbell } from '../posix/doorbell.ts'
import type { Libc } from '../posix/libc.ts'
import { type Mapping, mapShared, rangeLengthOf, unmapShared } from '../posix/mapping.ts'
import { assertSealed, isSealable } from '../posix/sealed-memory.ts'
import { receiveMessage, sendMessage } from '../posix/unix-socket.ts'
import { undisturbed } from '../threads/undisturbed.ts'
import {
  encodeKey,
  encodeSegment,
  KEY_ACCESS,
  KEY_INDEX,
  KEY_LENGTH,
  KEY_READ,
  KEY_WRITE,
  MAGIC,
  SEGMENT_INDEX,
  SEGMENT_MAGIC,
  SEGMENT_SIZE,
} from './handoff-layout.ts'
import type { SharedMemory } from './shared-memory.ts'
import { StrangeUsers } from './strange-users.ts'

/** Segments that one end may pass during the life of a connection. */
export const SEGMENTS_PER_PEER_MAX = 64
/** Limits of this thread's mappings of peers' segments: number and bytes. Further segments are reached by messages. */
export const SEGMENTS_MAPPED_MAX = 4096
export const SEGMENT_BYTES_MAPPED_MAX = 64 * 1024 ** 3

const NO_BYTES = new Uint8Array(0)

let mappedCount = 0
let mappedBytes = 0
export const strangeUsers = new StrangeUsers(() => performance.now())
/** Keeps open the connections whose close might block. */
const unclosed = new Set<Doorbell>()

/**
 * Closes descriptors of memory, which cannot block. All others stay open and are counted for user `uid`; returns their
 * number.
 */
export function closePassed(libc: Libc, descriptors: readonly number[], uid: number): number {
  let strange = 0
  for (const descriptor of descriptors) {
    if (isSealable(libc, descriptor)) {
      libc.close(descriptor)
      continue
    }
    strange++
    strangeUsers.note(uid)
  }
  return strange
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
  /** Never watched. Owns the descriptor, which Node closes when the thread ends. */
  readonly #connection: Doorbell
  readonly #peerUid: number
  readonly #passed = new Map<SharedMemory, Buffer>()
  /** The peer's segments by index; undefined if a limit kept this side from mapping it. */
  readonly #mapped: (MappedSegment | undefined)[] = []

  /** Owns `fd`, one end of a unix connection, from now on. */
  constructor(libc: Libc, fd: number, peerUid: number) {
    this.#libc = libc
    this.#connection = new Doorbell(libc, fd)
    this.#peerUid = peerUid
  }

  /** Passes the memory's descriptor unless the peer has it. Returns the key with which the peer imports the segment. */
  pass(memory: SharedMemory): Buffer {
    const passed = this.#passed.get(memory)
    if (passed !== undefined) return passed
    const index = this.#passed.size
    if (index === SEGMENTS_PER_PEER_MAX) {
      throw new NicError('ERR_NIC_UNAVAILABLE', `the peer has ${SEGMENTS_PER_PEER_MAX} segments already`)
    }
    sendMessage(this.#libc, this.#connection.fd, encodeSegment(index), [memory.fd])
    const key = encodeKey(memory.mayWrite ? KEY_READ | KEY_WRITE : KEY_READ, memory.length, index)
    this.#passed.set(memory, key)
    return key
  }

  /** The peer's segment of this key, mapped at the first import. */
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

  /** Unmaps the peer's segments and closes the connection, unless closing it might block. */
  close(): void {
    for (const segment of this.#mapped) segment?.unmap(this.#libc)
    this.#mapped.length = 0
    if (!this.#connection.isOpen) return
    // Drained first: with the connection the kernel closes unreceived descriptors, which may block.
    this.#libc.shutdown(this.#connection.fd, SHUT_RDWR)
    if (this.#drain()) return this.#connection.close()
    strangeUsers.note(this.#peerUid)
    unclosed.add(this.#connection)
  }

  #map(index: number, length: number, mayWrite: boolean): MappedSegment | undefined {
    const descriptor = this.#receive(index)
    if (!isSealable(this.#libc, descriptor)) {
      strangeUsers.note(this.#peerUid)
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

  /**
   * Receives and closes unclaimed descriptors. False on an error, if more arrive than a peer may pass, or at the first
   * that is no memory: the others stay in the connection, where they cost this process no descriptors.
   */
  #drain(): boolean {
    for (let i = 0; i <= SEGMENTS_PER_PEER_MAX; i++) {
      try {
        const message = receiveMessage(this.#libc, this.#connection.fd, SEGMENT_SIZE)
        if (message === undefined || message.bytes.length === 0) return true
        if (closePassed(this.#libc, message.descriptors, this.#peerUid) > 0) return false
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
