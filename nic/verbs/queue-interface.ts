/** The objects of a connection over a queue pair, and the parts of the contract that they fulfil alone. */
import { constants } from 'node:os'
import type { NicError } from '../errors.ts'
import type { Access, Capabilities, InterfaceState, Registration, RemoteMemory } from '../nic.ts'
import { setTimeout } from '../real-time.ts'
import { BROKEN, CLOSED, OUT_OF_BOUNDS, type Status } from '../status.ts'
import { frameMaxOf, receivesOf } from './frame-layout.ts'
import { OneSided, VerbsMemory, VerbsRegistration } from './one-sided.ts'
import { QueuePair } from './queue-pair.ts'
import { RECEIVES_AT_ONCE, ReceiveChain } from './receive-chain.ts'
import { ReceiveQueue } from './receive-queue.ts'
import { OwnReceives } from './receive-supply.ts'
import type { RegistrationCache } from './registration-cache.ts'
import { SendQueue, sendsOf } from './send-queue.ts'
import type { Grant } from './shared-receives.ts'
import { Slab } from './slab.ts'
import type { CompletionOwner, VerbsAdapter } from './verbs-adapter.ts'

const { ENOMEM } = constants.errno
/**
 * Receives that a stopped queue pair took from the shared queue complete soon. Some providers drop the completions of a
 * destroyed queue pair that were not polled: the count of its receives would be lost.
 */
const DRAIN_MS = 20

export abstract class QueueInterface implements CompletionOwner {
  readonly capabilities: Capabilities
  state: InterfaceState = 'open'
  protected readonly adapter: VerbsAdapter
  protected readonly slab: Slab
  protected readonly qp: QueuePair
  protected readonly sends: SendQueue
  protected readonly receives: ReceiveQueue
  protected readonly oneSided: OneSided
  /** The peer has sent BYE. */
  protected isPeerGone = false
  readonly #cache: RegistrationCache
  /** Undefined if the receives are the queue pair's own. */
  readonly #grant: Grant | undefined
  readonly #slot: number
  readonly #completionsMax: number
  #isReferenced = false
  #isAttending = false
  #isReleased = false

  constructor(adapter: VerbsAdapter, cache: RegistrationCache, ringSize: number) {
    this.adapter = adapter
    this.#cache = cache
    this.capabilities = capabilitiesOf(ringSize)
    const usual = receivesOf(ringSize)
    const grant = adapter.sharedReceives.acquire(usual)
    this.#grant = grant
    const sendMax = sendsOf(grant?.count ?? usual, grant !== undefined)
    // Where the word follows its frame, a frame is two requests.
    const requestMax = adapter.manager === undefined ? sendMax : 2 * sendMax
    // The shared queue keeps room for the completions of all its receives.
    this.#completionsMax = requestMax + (grant === undefined ? usual : 0)
    try {
      this.#slot = adapter.enter(this, this.#completionsMax)
    } catch (error) {
      adapter.sharedReceives.release(grant, 0)
      throw error
    }
    let slab: Slab | undefined
    let qp: QueuePair | undefined
    try {
      slab = orWithoutCache(cache, () => new Slab(adapter, ringSize))
      this.slab = slab
      qp = orWithoutCache(
        cache,
        () => new QueuePair(adapter, requestMax, grant === undefined ? usual : 0, grant?.queue),
      )
      this.qp = qp
      const supply = grant ?? new OwnReceives(qp, chainsOf(adapter, slab, this.#slot), usual)
      this.receives = new ReceiveQueue(supply, slab)
    } catch (error) {
      qp?.destroy()
      slab?.release()
      adapter.leave(this.#slot, this.#completionsMax)
      adapter.sharedReceives.release(grant, 0)
      throw error
    }
    if (grant !== undefined) adapter.addSharer(this.qp.number, this)
    this.sends = new SendQueue(adapter, this.qp, this.slab, this.#slot, this.receives.count, sendMax)
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

  /** Watches for completions without polls, until `ignore`. */
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

  /** Not while completions are dispatched: those of this connection must come before its slot is reused. */
  protected release(): void {
    if (this.#isReleased) return
    this.unref()
    this.ignore()
    this.#isReleased = true
    if (this.#grant === undefined) return this.#releaseReceives()
    this.qp.stop()
    setTimeout(() => this.#releaseReceives(), DRAIN_MS).unref()
  }

  #releaseReceives(): void {
    const { adapter, qp } = this
    adapter.pollAll()
    qp.destroy()
    adapter.pollAll()
    if (this.#grant !== undefined) adapter.removeSharer(qp.number)
    adapter.sharedReceives.release(this.#grant, this.receives.unspent)
    adapter.leave(this.#slot, this.#completionsMax)
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

/** If the system refuses to pin more, all unused cached registrations are dropped first. */
function orWithoutCache<T>(cache: RegistrationCache, make: () => T): T {
  try {
    return make()
  } catch (error) {
    if ((error as NicError).errno !== ENOMEM || !cache.clear()) throw error
    return make()
  }
}

/** The chains to post, in rotation. */
function chainsOf({ verbs, manager }: VerbsAdapter, slab: Slab, slot: number): ReceiveChain[] {
  if (manager === undefined) return [new ReceiveChain(verbs.libc, slot)]
  return Array.from(
    { length: receivesOf(slab.ringSize) / RECEIVES_AT_ONCE },
    (_, i) => new ReceiveChain(verbs.libc, slot, { slab, first: i * RECEIVES_AT_ONCE }),
  )
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
