/** How fast one owner may ask. */
interface Bucket {
  tokens: number
  filledMs: number
}

/** Owners that are remembered; whoever has been quiet for a second is as good as new, and need not be. */
const OWNERS_MAX = 10_000

export class TokenBuckets {
  readonly #perSecond: number
  readonly #buckets = new Map<string, Bucket>()

  constructor(perSecond: number) {
    this.#perSecond = perSecond
  }

  /** 0 if one more request is in order; else the time until it will be. */
  take(owner: string, nowMs = performance.now()): number {
    const bucket = this.#bucket(owner, nowMs)
    const gained = ((nowMs - bucket.filledMs) / 1000) * this.#perSecond
    bucket.tokens = Math.min(this.#perSecond, bucket.tokens + gained)
    bucket.filledMs = nowMs
    if (bucket.tokens < 1) return Math.ceil(((1 - bucket.tokens) / this.#perSecond) * 1000)
    bucket.tokens -= 1
    return 0
  }

  #bucket(owner: string, nowMs: number): Bucket {
    const known = this.#buckets.get(owner)
    if (known !== undefined) return known
    if (this.#buckets.size >= OWNERS_MAX) this.#forgetFull(nowMs)
    const bucket = { tokens: this.#perSecond, filledMs: nowMs }
    this.#buckets.set(owner, bucket)
    return bucket
  }

  #forgetFull(nowMs: number): void {
    for (const [owner, { filledMs }] of this.#buckets) {
      if (nowMs - filledMs >= 1000) this.#buckets.delete(owner)
    }
    // All of them in one second: the oldest starts anew.
    for (const owner of this.#buckets.keys()) {
      if (this.#buckets.size < OWNERS_MAX) break
      this.#buckets.delete(owner)
    }
  }
}
