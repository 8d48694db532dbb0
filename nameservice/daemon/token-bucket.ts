/** Limits the rate of each owner's requests. */
interface Bucket {
  tokens: number
  filledMs: number
}

/**
 * Most owners that are remembered, the latest ones. An owner that was quiet for a second has a full bucket, like a
 * new one.
 */
const OWNERS_MAX = 10_000

export class TokenBuckets {
  readonly #perSecond: number
  readonly #buckets = new Map<string, Bucket>()

  constructor(perSecond: number) {
    this.#perSecond = perSecond
  }

  /** 0 if the owner may make one more request; otherwise the time until then. */
  acquire(owner: string, nowMs = performance.now()): number {
    const bucket = this.#bucket(owner, nowMs)
    const gained = ((nowMs - bucket.filledMs) / 1000) * this.#perSecond
    bucket.tokens = Math.min(this.#perSecond, bucket.tokens + gained)
    bucket.filledMs = nowMs
    if (bucket.tokens < 1) return Math.ceil(((1 - bucket.tokens) / this.#perSecond) * 1000)
    bucket.tokens -= 1
    return 0
  }

  #bucket(owner: string, nowMs: number): Bucket {
    const bucket = this.#buckets.get(owner) ?? { tokens: this.#perSecond, filledMs: nowMs }
    // Move the owner to the end: the first owner in the map was quiet for longest.
    this.#buckets.delete(owner)
    this.#buckets.set(owner, bucket)
    if (this.#buckets.size > OWNERS_MAX) this.#buckets.delete(this.#buckets.keys().next().value as string)
    return bucket
  }
}
