/** What a connection over a queue pair is made of, and what of the contract its parts do by themselves. */
import { constants } from 'node:os'
import type { NicError } from '../errors.ts'
import type { Access, Capabilities, InterfaceState, Registration, RemoteMemory } from '../nic.ts'
import { BROKEN, CLOSED, OUT_OF_BOUNDS, type Status } from '../status.ts'
import { frameMaxOf, receivesOf } from './frame-layout.ts'
import { OneSided, VerbsMemory, VerbsRegistration } from './one-sided.ts'
import { QueuePair } from './queue-pair.ts'
import { ReceiveQueue } from './receive-queue.ts'
import type { RegistrationCache } from './registration-cache.ts'
import { SendQueue, sendsOf, WORK_RECEIVE } from './send-queue.ts'
import { Slab } from './slab.ts'
import { type CompletionOwner, IDENTITY_KIND_SHIFT, type VerbsAdapter } from './verbs-adapter.ts'

const { ENOMEM } = constants.errno

export abstract class QueueInterface implements CompletionOwner {
  readonly capabilities: Capabilities
  state: InterfaceState = 'open'
  protected readonly adapter: VerbsAdapter
  protected readonly slab: Slab
  protected readonly qp: QueuePair
  protected readonly sends: SendQueue
  protected readonly receives: ReceiveQueue
  protected readonly oneSided: OneSided
  /** The peer has said its last word. */
  protected isPeerGone = false
  readonly #cache: RegistrationCache
  readonly #slot: number
  readonly #completionsMax: number
  #isReferenced = false
  #isAttending = false
  #isReleased = false

  constructor(adapter: VerbsAdapter, cache: RegistrationCache, ringSize: number) {
    this.adapter = adapter
    this.#cache = cache
    this.capabilities = capabilitiesOf(ringSize)
    this.#completionsMax = receivesOf(ringSize) + sendsOf(ringSize)
    this.#slot = adapter.enter(this, this.#completionsMax)
    let slab: Slab | undefined
    let qp: QueuePair | undefined
    try {
      slab = orWithoutCache(cache, () => new Slab(adapter, ringSize))
      this.slab = slab
      const identity = (WORK_RECEIVE << IDENTITY_KIND_SHIFT) | this.#slot
      qp = orWithoutCache(
        cache,
        () => new QueuePair(adapter, sendsOf(ringSize), receivesOf(ringSize), identity),
      )
      this.qp = qp
      this.receives = new ReceiveQueue(qp, slab)
    } catch (error) {
      qp?.destroy()
      slab?.release()
      adapter.leave(this.#slot, this.#completionsMax)
      throw error
    }
    this.sends = new SendQueue(adapter, this.qp, this.slab, this.#slot)
    this.oneSided = new OneSided(adapter, this.sends)
  }

  get sendBytes(): Uint8Array {
    return this.sends.bytes
  }

  get sendWords(): Int32Array {
    return this.sends.words
  }

  get receiveWords(): Int32Array {
    return this.receives.words
  }

  ref(): void {
    if (this.#isReferenced || this.#isReleased) return
    this.#isReferenced = true
    this.adapter.ref()
  }

  unref(): void {
    if (!this.#isReferenced) return
    this.#isReferenced = false
    this.adapter.unref()
  }

  register(bytes: Uint8Array, access: Access): Registration {
    return new VerbsRegistration(this.#cache, bytes, access)
  }

  importKey(key: Uint8Array): RemoteMemory {
    return new VerbsMemory(key)
  }

  rdmaRead(
    local: Registration,
    localOffset: number,
    remote: RemoteMemory,
    remoteOffset: number,
    length: number,
    workId: number,
  ): Status {
    if (!remote.access.remoteRead) return OUT_OF_BOUNDS
    return this.#transfer(true, local, localOffset, remote, remoteOffset, length, workId)
  }

  rdmaWrite(
    local: Registration,
    localOffset: number,
    remote: RemoteMemory,
    remoteOffset: number,
    length: number,
    workId: number,
  ): Status {
    if (!remote.access.remoteWrite) return OUT_OF_BOUNDS
    return this.#transfer(false, local, localOffset, remote, remoteOffset, length, workId)
  }

  abstract handleCompletion(kind: number, low: number, status: number, immediate: number): void
  abstract handleDeviceLost(reason: string): void
  abstract ring(): void
  abstract close(): void

  /** What completes is noticed without polls, until `ignore`. */
  protected attend(): void {
    if (this.#isAttending) return
    this.#isAttending = true
    this.adapter.attend()
  }

  protected ignore(): void {
    if (!this.#isAttending) return
    this.#isAttending = false
    this.adapter.ignore()
  }

  /** Not while completions are handed out: those of this connection must have been, before its slot is another's. */
  protected release(): void {
    if (this.#isReleased) return
    this.unref()
    this.ignore()
    this.#isReleased = true
    this.qp.destroy()
    this.adapter.pollAll()
    this.adapter.leave(this.#slot, this.#completionsMax)
    this.slab.release()
  }

  #transfer(
    isRead: boolean,
    local: Registration,
    localOffset: number,
    remote: RemoteMemory,
    remoteOffset: number,
    length: number,
    workId: number,
  ): Status {
    if (this.state !== 'open') return this.state === 'broken' ? BROKEN : CLOSED
    return this.oneSided.start(
      isRead,
      local as VerbsRegistration,
      localOffset,
      remote as VerbsMemory,
      remoteOffset,
      length,
      workId,
      this.isPeerGone,
    )
  }
}

/** If the system pins no more, what the cache only keeps for later is given up first. */
function orWithoutCache<T>(cache: RegistrationCache, make: () => T): T {
  try {
    return make()
  } catch (error) {
    if ((error as NicError).errno !== ENOMEM || !cache.clear()) throw error
    return make()
  }
}

function capabilitiesOf(ringSize: number): Capabilities {
  return {
    ordered: true,
    reliable: true,
    frameMax: frameMaxOf(ringSize),
    inlineMax: frameMaxOf(ringSize),
    rdmaRead: true,
    rdmaWrite: true,
    rdmaReason: undefined,
    wakeFd: true,
  }
}
