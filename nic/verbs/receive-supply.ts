/** Where the receives of a connection come from: they are its queue pair's own, or granted of a queue that many share. */
import type { NicError } from '../errors.ts'
import type { QueuePair } from './queue-pair.ts'
import { RECEIVES_AT_ONCE, type ReceiveChain } from './receive-chain.ts'

export interface ReceiveSupply {
  /** So many are there for this connection at any time, which is what its peer is told. A power of two. */
  readonly count: number
  /** One of them was used. Returns how many can be used anew, or an errno, negative: then the peer counts on too many. */
  renew(): number
  /** What that errno means to people. */
  postError(errno: number): NicError
}

export class OwnReceives implements ReceiveSupply {
  readonly count: number
  readonly #qp: QueuePair
  readonly #chain: ReceiveChain
  #spent = 0

  constructor(qp: QueuePair, chain: ReceiveChain, count: number) {
    this.#qp = qp
    this.#chain = chain
    this.count = count
    for (let posted = 0; posted < count; posted += RECEIVES_AT_ONCE) {
      const errno = qp.postReceives(chain)
      if (errno !== 0) throw this.postError(errno)
    }
  }

  renew(): number {
    if (++this.#spent < RECEIVES_AT_ONCE) return 0
    this.#spent = 0
    const errno = this.#qp.postReceives(this.#chain)
    return errno === 0 ? RECEIVES_AT_ONCE : -errno
  }

  postError(errno: number): NicError {
    return this.#qp.postError('ibv_post_recv', errno)
  }
}
