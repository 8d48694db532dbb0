import { copyBytes, hasBytes } from '../copy.ts'
import { NicError } from '../errors.ts'
import type { Access, Capabilities, DoorbellAnswer, Registration, RemoteMemory } from '../nic.ts'
import { PlainRegistration } from '../plain-registration.ts'
import type { Doorbell } from '../posix/doorbell.ts'
import type { Libc } from '../posix/libc.ts'
import { type Mapping, unmapShared } from '../posix/mapping.ts'
import { nextTick } from '../real-time.ts'
import { RingConsumer } from '../ring/ring-consumer.ts'
import { RingInterface } from '../ring/ring-interface.ts'
import { frameMaxOf, type OpenOverflow, ringBytes } from '../ring/ring-layout.ts'
import { RingProducer } from '../ring/ring-producer.ts'
import { BROKEN, OK, type Status } from '../status.ts'
import { KEY_MAGIC, KEY_SIZE, MAGIC } from './handoff-layout.ts'
import { OverflowToPeer, overflowMemory } from './overflow-memory.ts'
import type { PeerProcess } from './peer-process.ts'
import {
  importProcessKey,
  type ProcessMemory,
  ProcessRegistration,
  readMemory,
  writeMemory,
} from './process-memory.ts'
import { MappedSegment, type SegmentExchange } from './segment-exchange.ts'
import { sharedMemoryOf } from './shared-memory.ts'

export interface ShmParts {
  readonly mapping: Mapping
  readonly ringSize: number
  /** True for the offering side, which sends in the first ring. */
  readonly offering: boolean
  /** The interface owns this from now on, and the members below. */
  readonly bell: Doorbell
  /** Passes memory of `allocate` to the peer; undefined unless both sides want that. */
  readonly exchange: SegmentExchange | undefined
  /** The peer's process, or the reason why its memory is not used. */
  readonly peerProcess: PeerProcess | string
}

export class ShmInterface extends RingInterface {
  readonly driver = 'shm'
  readonly #libc: Libc
  readonly #mapping: Mapping
  readonly #overflow: OverflowToPeer
  readonly #bell: Doorbell
  readonly #exchange: SegmentExchange | undefined
  readonly #peerProcess: PeerProcess | undefined
  #answer: DoorbellAnswer = () => {}
  #handlePeerGone: () => void = () => {}

  constructor(libc: Libc, parts: ShmParts) {
    const { mapping, ringSize, offering, exchange, peerProcess } = parts
    const second = ringBytes(ringSize)
    const [toPeer, fromPeer] = offering ? ([0, 1] as const) : ([1, 0] as const)
    super(
      new RingProducer(mapping.memory, toPeer * second, ringSize),
      new RingConsumer(mapping.memory, fromPeer * second, ringSize, () =>
        overflowMemory(libc, mapping, ringSize, fromPeer),
      ),
      capabilitiesOf(
        ringSize,
        exchange === undefined && typeof peerProcess === 'string' ? peerProcess : undefined,
      ),
    )
    this.#libc = libc
    this.#mapping = mapping
    this.#overflow = new OverflowToPeer(libc, mapping, ringSize, toPeer, this.producer)
    this.#bell = parts.bell
    this.#exchange = exchange
    this.#peerProcess = typeof peerProcess === 'string' ? undefined : peerProcess
    // Watched from now on, with or without a listener, so that the doorbell notices the end of the connection.
    this.#bell.watch(this.#handleBell)
  }

  get frameWord(): number {
    return this.consumer.frameWord
  }

  setDoorbell(listener: DoorbellAnswer): void {
    this.#answer = listener
  }

  get hasPeer(): boolean {
    return this.#bell.hasPeer
  }

  watchPeer(listener: () => void): void {
    this.#handlePeerGone = listener
    // The connection has ended, and its end is reported only once: this listener would never be called.
    if (!this.#bell.isOpen) nextTick(listener)
  }

  readonly #handleBell = (_bytes: Buffer, length: number): void => {
    try {
      this.#answer(length > 0)
    } finally {
      if (length === 0) this.#handlePeerGone()
    }
  }

  ref(): void {
    this.#bell.ref()
  }

  unref(): void {
    this.#bell.unref()
  }

  /** Memory of `allocate` is passed as a whole. Other memory needs ZCopy: the peer accesses our process. */
  register(bytes: Uint8Array, access: Access): Registration {
    const isLocal = !access.remoteRead && !access.remoteWrite
    if (isLocal) return new PlainRegistration(bytes, access)
    const shared =
      this.#exchange && access.remoteRead && !access.isRevocable ? sharedMemoryOf(bytes) : undefined
    if (shared !== undefined && shared.mayWrite === access.remoteWrite) {
      return new PlainRegistration(bytes, access, (this.#exchange as SegmentExchange).pass(shared))
    }
    if (this.#peerProcess !== undefined) return new ProcessRegistration(this.#libc, bytes, access)
    throw new NicError('ERR_NIC_UNAVAILABLE', 'the peer reaches only memory that was allocated to be shared')
  }

  importKey(key: Uint8Array): RemoteMemory {
    const view = Buffer.from(key.buffer, key.byteOffset, key.byteLength)
    const isSegment = view.length === KEY_SIZE && view.readUInt32LE(MAGIC) === KEY_MAGIC
    if (isSegment && this.#exchange !== undefined) return this.#exchange.import(view)
    if (this.#peerProcess !== undefined) return importProcessKey(view)
    throw new NicError('ERR_NIC_ARGUMENT', 'this is not a key of memory that the peer may give')
  }

  protected wakePeer(): void {
    this.#bell.ring()
  }

  protected override overflowToPeer(): OpenOverflow {
    return () => this.#overflow.open()
  }

  protected release(): void {
    this.#overflow.close()
    this.#exchange?.close()
    this.#peerProcess?.close()
    unmapShared(this.#libc, this.#mapping)
    this.#bell.close()
  }

  protected readRemote(
    local: Registration,
    localOffset: number,
    remote: RemoteMemory,
    remoteOffset: number,
    length: number,
  ): Status {
    if (!this.#bell.hasPeer) return BROKEN
    if (remote instanceof MappedSegment) {
      if (!hasBytes(local.bytes, localOffset + length)) return BROKEN
      copyBytes(remote.bytes, remoteOffset, local.bytes, localOffset, length)
      return OK
    }
    const peer = this.#peerProcess
    if (!peer?.isThere) return BROKEN
    const into = this.#addressOf(local, localOffset)
    const isRead = readMemory(this.#libc, peer.pid, into, remote as ProcessMemory, remoteOffset, length)
    // If a worker thread of the peer has ended, its memory may be reused. Node closes the worker's descriptors before
    // it frees the memory, so an open connection after the read proves that the bytes were valid.
    return isRead && peer.isThere && this.#bell.hasPeer ? OK : BROKEN
  }

  protected writeRemote(
    local: Registration,
    localOffset: number,
    remote: RemoteMemory,
    remoteOffset: number,
    length: number,
  ): Status {
    if (!this.#bell.hasPeer) return BROKEN
    if (remote instanceof MappedSegment) {
      if (!hasBytes(local.bytes, localOffset + length)) return BROKEN
      copyBytes(local.bytes, localOffset, remote.bytes, remoteOffset, length)
      return OK
    }
    const peer = this.#peerProcess
    if (!peer?.isThere) return BROKEN
    const from = this.#addressOf(local, localOffset)
    return writeMemory(this.#libc, peer.pid, from, remote as ProcessMemory, remoteOffset, length)
      ? OK
      : BROKEN
  }

  #addressOf(local: Registration, offset: number): bigint {
    return this.#libc.address(local.bytes) + BigInt(offset)
  }
}

function capabilitiesOf(ringSize: number, rdmaReason: string | undefined): Capabilities {
  return {
    ordered: true,
    reliable: true,
    frameMax: frameMaxOf(ringSize),
    inlineMax: frameMaxOf(ringSize),
    rdmaRead: rdmaReason === undefined,
    rdmaWrite: rdmaReason === undefined,
    rdmaReason,
    wakeFd: true,
  }
}
