/**
 * Receives that many connections share. Each connection has a grant, which its peer may use up: the sum of the grants
 * never exceeds the posted receives, so the queue is never empty.
 *
 * Used receives of all connections are posted again in bundles. Until a bundle is complete, others stand in: the queue
 * has one bundle more than was granted. So a used receive is available again at once.
 */
import { NicError } from '../errors.ts'
import { RECEIVES_GRANTED_MIN } from './frame-layout.ts'
import { SRQ_INIT_MAX_SGE, SRQ_INIT_MAX_WR, SRQ_INIT_SIZE, SRQ_PD } from './library-layout.ts'
import { RECEIVES_AT_ONCE, ReceiveChain } from './receive-chain.ts'
import type { ReceiveSupply } from './receive-supply.ts'
import type { VerbsDevice } from './verbs-device.ts'
import type { Pointer } from './verbs-library.ts'
import { SLOT_SHARED } from './work-identity.ts'

/** Connections with receives of their own; later ones share. */
export const OWN_RECEIVERS_MAX = 16
/** Share of the remaining receives that one connection is granted, so that later ones find some. */
const PART = 256

/** How many of `left` receives a connection gets that would have `usual` of its own; 0 if too few are left. */
export function grantOf(left: number, usual: number): number {
  if (left < RECEIVES_GRANTED_MIN) return 0
  let count = usual
  while (count > RECEIVES_GRANTED_MIN && count > left / PART) count /= 2
  return count
}

/** One connection's grant of the shared queue. */
export class Grant implements ReceiveSupply {
  readonly count: number
  readonly queue: Pointer
  readonly #receives: SharedReceives

  constructor(receives: SharedReceives, queue: Pointer, count: number) {
    this.#receives = receives
    this.queue = queue
    this.count = count
  }

  renew(): number {
    return this.#receives.renewOne()
  }

  postError(errno: number): NicError {
    return this.#receives.postError(errno)
  }
}

export class SharedReceives {
  readonly #adapter: VerbsDevice
  /** Receives that the queue has room for; 0 if none is possible. */
  readonly #depth: number
  readonly #chain: ReceiveChain
  #queue: Pointer | undefined
  /** Connections with receives of their own. */
  #ownReceivers = 0
  #granted = 0
  #posted = 0
  #spent = 0
  /** Completions that are reserved in the adapter. */
  #promised = 0
  /** The errno of a failed post. */
  #errno = 0

  constructor(adapter: VerbsDevice, depth: number) {
    this.#adapter = adapter
    this.#depth = depth
    this.#chain = new ReceiveChain(adapter.verbs.libc, SLOT_SHARED)
  }

  /** Used receives of the queue, of all connections together. */
  get granted(): number {
    return this.#granted
  }

  /** A grant for a new connection; undefined if it gets receives of its own. Throws if none are left. */
  acquire(usual: number): Grant | undefined {
    this.#adapter.assertUsable()
    const isOwn = this.#depth === 0 || this.#ownReceivers < OWN_RECEIVERS_MAX
    const queue = isOwn ? undefined : this.#open()
    if (queue === undefined) {
      this.#ownReceivers++
      return undefined
    }
    const count = grantOf(this.#depth - RECEIVES_AT_ONCE - this.#granted, usual)
    if (count === 0) {
      const { device } = this.#adapter.port
      throw new NicError('ERR_NIC_UNAVAILABLE', `${device} has no receives for more connections`)
    }
    try {
      this.#postFor(this.#granted + count)
    } catch (error) {
      this.#closeIfUnused()
      throw error
    }
    this.#granted += count
    return new Grant(this, queue, count)
  }

  /** The connection's queue pair is gone. `unspent`: receives that it used and did not report. */
  release(grant: Grant | undefined, unspent: number): void {
    if (grant === undefined) {
      this.#ownReceivers--
      return
    }
    this.#granted -= grant.count
    for (let i = 0; i < unspent; i++) this.renewOne()
    this.#closeIfUnused()
  }

  renewOne(): number {
    if (this.#errno === 0 && ++this.#spent === RECEIVES_AT_ONCE) {
      this.#spent = 0
      this.#errno = this.#post()
    }
    return this.#errno === 0 ? 1 : -this.#errno
  }

  postError(errno: number): NicError {
    return this.#adapter.postError('ibv_post_srq_recv', errno)
  }

  /** Posts enough for `granted` receives. The first bundle replaces used ones. */
  #postFor(granted: number): void {
    const missing = granted + RECEIVES_AT_ONCE - this.#posted
    const bundles = Math.ceil(missing / RECEIVES_AT_ONCE)
    if (bundles <= 0) return
    this.#adapter.promise(bundles * RECEIVES_AT_ONCE)
    this.#promised += bundles * RECEIVES_AT_ONCE
    for (let i = 0; i < bundles; i++) {
      const errno = this.#post()
      if (errno !== 0) throw this.postError(errno)
      this.#posted += RECEIVES_AT_ONCE
    }
  }

  #post(): number {
    const { counters, functions } = this.#adapter
    counters.postReceives++
    return functions.postSharedReceive(this.#queue as Pointer, this.#chain.pointer, this.#chain.badPointer)
  }

  /** Undefined if the device refuses to create one now. */
  #open(): Pointer | undefined {
    if (this.#queue !== undefined) return this.#queue
    const { verbs, pd } = this.#adapter
    const attributes = Buffer.alloc(SRQ_INIT_SIZE)
    attributes.writeUInt32LE(this.#depth, SRQ_INIT_MAX_WR)
    attributes.writeUInt32LE(1, SRQ_INIT_MAX_SGE)
    const made = verbs.ibv_create_srq(pd, attributes)
    if (made === null) return undefined
    const queue = BigInt(made)
    if (verbs.readPointer(queue, SRQ_PD) !== pd) {
      verbs.ibv_destroy_srq(queue)
      throw new NicError(
        'ERR_NIC_UNAVAILABLE',
        'libibverbs keeps struct ibv_srq in another way than is known here',
      )
    }
    this.#queue = queue
    return queue
  }

  /** The next queue begins anew, with all its receives. */
  #closeIfUnused(): void {
    if (this.#queue === undefined || this.#granted > 0) return
    this.#adapter.verbs.ibv_destroy_srq(this.#queue)
    this.#adapter.promise(-this.#promised)
    this.#queue = undefined
    this.#posted = 0
    this.#spent = 0
    this.#promised = 0
    this.#errno = 0
  }
}
