/**
 * Users who have passed descriptors that are no memory. Such a descriptor stays open, because closing it may block (a
 * FUSE daemon, a socket's linger time). So it costs this process a descriptor for good, and the user a refusal of
 * further connections. The refusal ends: the process that passed the descriptors need not be the user's only one. Each
 * lasts twice as long as the one before, which bounds what the user can leave open.
 */
import { NicError } from '../errors.ts'

/** Descriptors that are no memory which one user may pass before a refusal. */
export const STRANGE_MAX = 8
const REFUSED_MS_MIN = 60_000
const REFUSED_MS_MAX = 3_600_000

interface Record {
  /** Passed since the last refusal began. */
  count: number
  /** 0 before the first refusal. */
  refusedMs: number
  untilMs: number
}

export class StrangeUsers {
  readonly #now: () => number
  readonly #records = new Map<number, Record>()

  /** `now`: the time in milliseconds. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Throws while the user is refused. */
  assertPassesMemory(uid: number): void {
    const { untilMs = Number.NEGATIVE_INFINITY } = this.#records.get(uid) ?? {}
    if (untilMs > this.#now())
      throw new NicError('ERR_NIC_PEER_REFUSED', `user ${uid} has passed descriptors that are no memory`)
  }

  /** The user has passed one. */
  note(uid: number): void {
    const record = this.#records.get(uid) ?? { count: 0, refusedMs: 0, untilMs: Number.NEGATIVE_INFINITY }
    this.#records.set(uid, record)
    // Of connections that are older than the refusal: they end as well, and do not prolong it.
    if (record.untilMs > this.#now() || ++record.count < STRANGE_MAX) return
    record.count = 0
    record.refusedMs = Math.min(Math.max(2 * record.refusedMs, REFUSED_MS_MIN), REFUSED_MS_MAX)
    record.untilMs = this.#now() + record.refusedMs
  }
}
