/**
 * The workers of a cluster that share a listener, as far as this thread has met them; chooses the worker for each
 * connection.
 *
 * There is no list of the workers. The cluster's primary, or the kernel, chooses the worker that answers a call of the
 * hashed port. Connections go through the hashed port until as many calls in a row as there are known workers have met
 * no new one. From then on this class spreads connections over the channels. After COMPLETE_MS, or when a worker has
 * gone, the search begins anew.
 */
import { performance } from '../../nic/performance.ts'
import type { SocketChannel } from '../stream/socket-channel.ts'

/** Workers that one client looks for and uses; in a larger cluster other clients reach the rest. */
const MEMBERS_MAX = 64
/** Consecutive calls that meet only known workers, before the known ones count as all: at least, and at most. */
const REPEATS_MIN = 2
const REPEATS_MAX = 8
/** For how long the known workers count as all. */
const COMPLETE_MS = 1000

/** The thread that answered for a listener. */
export interface Reached {
  readonly channel: SocketChannel
  /**
   * The address that a CONNECT to the listener carries: the one that was called, or on a unix path the listener's id.
   */
  readonly address: string
  /** Another thread may answer the next call: a worker of the same cluster, or another listener on the same port. */
  readonly isShared: boolean
  /** The listener shows its program no connection that is still on TCP. */
  readonly isRequired: boolean
  /**
   * The peer itself has said in a handshake that it has the listener. Otherwise only a greeting says so, which anybody may
   * have copied.
   */
  readonly isProven: boolean
}

interface Member {
  readonly channel: SocketChannel
  /** The address that a CONNECT to this worker carries. */
  address: string
  /** Connections asked of the worker. */
  count: number
  /** Those of them without an answer yet: above 0 while the worker is busy. */
  waitingCount: number
}

export class WorkerGroup {
  #members: Member[] = []
  #repeatCount = 0
  #completeUntilMs = 0
  #wasComplete = false
  #lastMeeting: object | undefined

  /** The known workers count as all, for now. */
  get isComplete(): boolean {
    this.#dropGone()
    return this.#members.length > 0 && performance.now() < this.#completeUntilMs
  }

  get isEmpty(): boolean {
    this.#dropGone()
    return this.#members.length === 0
  }

  /**
   * Notes that a call has met the worker behind `meeting.channel`. Several connections may have waited for the same
   * call: true for the first of them, which may use this worker.
   */
  meet(meeting: Pick<Reached, 'channel' | 'address'>): boolean {
    if (meeting === this.#lastMeeting) return false
    this.#lastMeeting = meeting
    this.#dropGone()
    const { channel, address } = meeting
    const known = this.#members.find(member => member.channel === channel)
    const isKnown = known !== undefined
    // The worker may have begun to listen anew.
    if (isKnown) known.address = address
    if (!isKnown && this.#members.length < MEMBERS_MAX) {
      // A worker met later starts at the least count: otherwise it would get all following connections.
      const count = this.#wasComplete ? this.#leastCount() : 0
      this.#members.push({ channel, address, count, waitingCount: 0 })
    }
    this.#repeatCount = isKnown ? this.#repeatCount + 1 : 0
    const enough = Math.min(Math.max(this.#members.length, REPEATS_MIN), REPEATS_MAX)
    if (this.#repeatCount < enough && this.#members.length < MEMBERS_MAX) return true
    this.#repeatCount = 0
    this.#wasComplete = true
    this.#completeUntilMs = performance.now() + COMPLETE_MS
    return true
  }

  /** The hashed port does not answer now, perhaps because all workers are busy: uses the known workers for a while. */
  makeDo(): void {
    this.#completeUntilMs = performance.now() + COMPLETE_MS
  }

  /**
   * The worker for the next connection: idle workers first, then the one with the fewest connections. Skips those of
   * `isPassed`.
   */
  next(isPassed: (channel: SocketChannel) => boolean): Pick<Reached, 'channel' | 'address'> | undefined {
    this.#dropGone()
    let best: Member | undefined
    for (const member of this.#members) {
      if (!isPassed(member.channel) && (best === undefined || isBefore(member, best))) best = member
    }
    return best
  }

  /** Counts a connection asked of the worker; the caller calls the returned function when the answer has come. */
  noteAsked(channel: SocketChannel): () => void {
    const member = this.#members.find(member => member.channel === channel)
    if (member === undefined) return () => {}
    member.count++
    member.waitingCount++
    let isAnswered = false
    return () => {
      if (!isAnswered) member.waitingCount--
      isAnswered = true
    }
  }

  /** Removes a worker that no longer listens. */
  leave(channel: SocketChannel): void {
    this.#members = this.#members.filter(member => member.channel !== channel)
    this.#lookAnew()
  }

  #dropGone(): void {
    if (this.#members.every(({ channel }) => channel.isUsable)) return
    this.#members = this.#members.filter(({ channel }) => channel.isUsable)
    this.#lookAnew()
  }

  #lookAnew(): void {
    this.#repeatCount = 0
    this.#completeUntilMs = 0
  }

  #leastCount(): number {
    return this.#members.reduce((least, { count }) => Math.min(least, count), this.#members[0]?.count ?? 0)
  }
}

function isBefore(one: Member, other: Member): boolean {
  const isBusy = one.waitingCount > 0
  return isBusy === other.waitingCount > 0 ? one.count < other.count : !isBusy
}
