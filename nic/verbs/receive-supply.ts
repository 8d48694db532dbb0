/** The receives of a connection: of its own queue pair, or a grant of a shared queue. */
import type { NicError } from '../errors.ts'
import type { QueuePair } from './queue-pair.ts'
import { RECEIVES_AT_ONCE, type ReceiveChain } from './receive-chain.ts'

export interface ReceiveSupply {
  /** Receives that this connection always has, and that its peer counts on. A power of two. */
  readonly count: number
  /**
   * One receive was used. Returns how many were posted again, or a negative errno: then the peer counts on too many.
   */
  renew(): number
  /** The error for that errno. */
  postError(errno: number): NicError
}

export class OwnReceives implements ReceiveSupply {
  readonly count: number
  readonly #qp: QueuePair
  /** One chain that is posted repeatedly; with memory, all chains in rotation. */
  readonly #chains: readonly ReceiveChain[]
  #next = 0
  #spent = 0

  constructor(qp: QueuePair, chains: readonly ReceiveChain[], count: number) {
    this.#qp = qp
    this.#chains = chains
    this.count = count
    for (let posted = 0; posted < count; posted += RECEIVES_AT_ONCE) {
      const errno = this.#post()
      if (errno !== 0) throw this.postError(errno)
    }
  }

  renew(): number {
    if (++this.#spent < RECEIVES_AT_ONCE) return 0
    this.#spent = 0
    const errno = this.#post()
    return errno === 0 ? RECEIVES_AT_ONCE : -errno
  }

  postError(errno: number): NicError {
    return this.#qp.postError('ibv_post_recv', errno)
  }

  #post(): number {
    const chain = this.#chains[this.#next] as ReceiveChain
    this.#next = this.#next + 1 === this.#chains.length ? 0 : this.#next + 1
    return Math.abs(this.#qp.postReceives(chain))
  }
}
