import type { Access, Capabilities, DoorbellAnswer, Registration, RemoteMemory } from '../nic.ts'
import type { Doorbell } from '../posix/doorbell.ts'
import type { Libc } from '../posix/libc.ts'
import { type Mapping, unmapShared } from '../posix/mapping.ts'
import { nextTick } from '../real-time.ts'
import { RingConsumer } from '../ring/ring-consumer.ts'
import { RingInterface } from '../ring/ring-interface.ts'
import { frameMaxOf, ringBytes } from '../ring/ring-layout.ts'
import { RingProducer } from '../ring/ring-producer.ts'
import { BROKEN, OK, type Status } from '../status.ts'
import {
  importProcessKey,
  type ProcessMemory,
  ProcessRegistration,
  readMemory,
  writeMemory,
} from './process-memory.ts'

export interface ShmParts {
  readonly mapping: Mapping
  readonly ringSize: number
  /** Whether this side offered: it sends in the first ring. */
  readonly offering: boolean
  /** Belongs to the interface from now on. */
  readonly bell: Doorbell
  readonly peerPid: number
  /** Why the peer's memory cannot be reached, or undefined if it can. */
  readonly rdmaReason: string | undefined
}

export class ShmInterface extends RingInterface {
  readonly driver = 'shm'
  readonly #libc: Libc
  readonly #mapping: Mapping
  readonly #bell: Doorbell
  readonly #peerPid: number
  #answer: DoorbellAnswer = () => {}
  #handlePeerGone: () => void = () => {}

  constructor(libc: Libc, parts: ShmParts) {
    const { mapping, ringSize, offering } = parts
    const second = ringBytes(ringSize)
    super(
      new RingProducer(mapping.memory, offering ? 0 : second, ringSize),
      new RingConsumer(mapping.memory, offering ? second : 0, ringSize),
      capabilitiesOf(ringSize, parts.rdmaReason),
    )
    this.#libc = libc
    this.#mapping = mapping
    this.#bell = parts.bell
    this.#peerPid = parts.peerPid
    // From now on the end of the connection is noticed, whether or not anybody listens.
    this.#bell.watch(this.#handleBell)
  }

  hasFrame(): boolean {
    return this.consumer.hasFrame()
  }

  setDoorbell(listener: DoorbellAnswer): void {
    this.#answer = listener
  }

  get hasPeer(): boolean {
    return this.#bell.hasPeer
  }

  watchPeer(listener: () => void): void {
    this.#handlePeerGone = listener
    // Its last ring is over: nothing else would tell.
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

  register(bytes: Uint8Array, access: Access): Registration {
    return new ProcessRegistration(this.#libc, bytes, access)
  }

  importKey(key: Uint8Array): RemoteMemory {
    return importProcessKey(key)
  }

  protected wakePeer(): void {
    this.#bell.ring()
  }

  protected release(): void {
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
    const into = (local as ProcessRegistration).address + BigInt(localOffset)
    const memory = remote as ProcessMemory
    const isRead =
      this.#bell.isOpen && readMemory(this.#libc, this.#peerPid, into, memory, remoteOffset, length)
    // A worker thread of the peer's may have ended, and its memory be anybody's: Node closes descriptors before that.
    return isRead && this.#bell.hasPeer ? OK : BROKEN
  }

  protected writeRemote(
    local: Registration,
    localOffset: number,
    remote: RemoteMemory,
    remoteOffset: number,
    length: number,
  ): Status {
    if (!this.#bell.hasPeer) return BROKEN
    const from = (local as ProcessRegistration).address + BigInt(localOffset)
    const memory = remote as ProcessMemory
    return writeMemory(this.#libc, this.#peerPid, from, memory, remoteOffset, length) ? OK : BROKEN
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
