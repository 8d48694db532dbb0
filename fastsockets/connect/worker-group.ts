/**
 * The workers of a cluster that share a listener, as far as this thread has met them, and whose turn it is.
 *
 * Nobody lists them. Each call of the hashed port is answered by the worker that the cluster's primary, or the kernel,
 * has chosen; so connections take that way until as many calls in a row as there are known workers have met no new one.
 * From then on they are spread here, over the channels. After a while, or when a worker has gone, it begins anew.
 */
import { performance } from '../../nic/real-time.ts'
import type { SocketChannel } from '../stream/socket-channel.ts'

/** Workers that are looked for and used; connections to the others of a larger cluster come from other clients. */
const MEMBERS_MAX = 64
/** Calls in a row that meet only known workers, before they are taken for all: at least, and at most. */
const REPEATS_MIN = 2
const REPEATS_MAX = 8
/** How long they are taken for all. */
const COMPLETE_MS = 1000

/** Who answered for a listener. */
export interface Reached {
  readonly channel: SocketChannel
  /** What a CONNECT to the listener says: the address that was called, or on a unix path the listener's id. */
  readonly address: string
  /** Others may answer the next time: the workers of a cluster, or whoever has the same port. */
  readonly isShared: boolean
}

interface Member {
  readonly channel: SocketChannel
  /** What a CONNECT to it says. */
  address: string
  /** Connections that it was asked for. */
  count: number
  /** Of those, not answered yet. A worker that is busy with something else has some. */
  waitingCount: number
}

export class WorkerGroup {
  #members: Member[] = []
  #repeatCount = 0
  #completeUntilMs = 0
  #wasComplete = false
  #lastMeeting: object | undefined

  /** All workers are known, for now. */
  get isComplete(): boolean {
    this.#dropGone()
    return this.#members.length > 0 && performance.now() < this.#completeUntilMs
  }

  get isEmpty(): boolean {
    this.#dropGone()
    return this.#members.length === 0
  }

  /**
   * A call has met the worker behind `meeting.channel`. Several connections may have waited for the same call: whether
   * this is the first of them, whose worker it is.
   */
  meet(meeting: Pick<Reached, 'channel' | 'address'>): boolean {
    if (meeting === this.#lastMeeting) return false
    this.#lastMeeting = meeting
    this.#dropGone()
    const { channel, address } = meeting
    const known = this.#members.find(member => member.channel === channel)
    const isKnown = known !== undefined
    // It may have begun to listen anew.
    if (isKnown) known.address = address
    if (!isKnown && this.#members.length < MEMBERS_MAX) {
      // A worker that came later has not missed its turns: it does not get all that follows.
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

  /** The hashed port does not answer now, because everybody is busy perhaps: those who are known will do for a while. */
  makeDo(): void {
    this.#completeUntilMs = performance.now() + COMPLETE_MS
  }

  /** Whose turn it is: first those who have answered all that they were asked. `isPassed` may pass some over. */
  next(isPassed: (channel: SocketChannel) => boolean): Pick<Reached, 'channel' | 'address'> | undefined {
    this.#dropGone()
    let best: Member | undefined
    for (const member of this.#members) {
      if (!isPassed(member.channel) && (best === undefined || isBefore(member, best))) best = member
    }
    return best
  }

  /** A connection was asked for; what is returned is to be called when there is an answer. */
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

  /** It no longer listens. */
  leave(channel: SocketChannel): void {
    this.#members = this.#members.filter(member => member.channel !== channel)
    this.#lookAnew()
  }

  #dropGone(): void {
    if (this.#members.every(({ channel }) => channel.isOpen)) return
    this.#members = this.#members.filter(({ channel }) => channel.isOpen)
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
