/**
 * Which connections of this thread have bytes to read: one epoll_wait for all of them. Idle connections that are polled
 * one after the other share its answer.
 */
import { EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLLIN } from '../posix/constants.ts'
import { type Libc, systemError } from '../posix/libc.ts'
import { setImmediate } from '../real-time.ts'
import { noteDescriptor } from '../threads/thread-ranges.ts'
import { undisturbed } from '../threads/undisturbed.ts'

/** Connections that one call reports; the kernel reports the others next time. */
const EVENTS_MAX = 64
/** struct epoll_event: events u32, data u64; packed on x86-64 only (epoll_event in the kernel's uapi headers). */
const EVENT_SIZE = process.arch === 'x64' ? 12 : 16
const DATA_WORD = process.arch === 'x64' ? 1 : 2

export interface Readable {
  /** Set when the kernel has bytes, the end or an error for the connection. */
  isReadable: boolean
  /** It has called `hold`. */
  isHeld: boolean
  /** Sends frames that wait for more. */
  endBurst(): void
}

export class Readiness {
  /** Number of looks so far. A connection that has seen the latest look needs a new one. */
  looks = 0
  /** This thread has sent since the latest look: if both ends are here, the answer may be outdated. */
  isStale = true
  readonly #libc: Libc
  readonly #epoll: number
  readonly #members: (Readable | undefined)[] = []
  readonly #events = new Uint8Array(EVENTS_MAX * EVENT_SIZE)
  readonly #words = new Int32Array(this.#events.buffer)
  readonly #held: Readable[] = []
  #willRelease = false

  constructor(libc: Libc) {
    this.#libc = libc
    this.#epoll = undisturbed(() => {
      const epoll = libc.epoll_create1(EPOLL_CLOEXEC)
      if (epoll < 0) throw systemError(libc, 'epoll_create1')
      noteDescriptor(epoll)
      return epoll
    })
  }

  /** Watches `fd`; returns the place to `leave`. */
  join(fd: number, member: Readable): number {
    const free = this.#members.indexOf(undefined)
    const place = free < 0 ? this.#members.length : free
    this.#words[0] = EPOLLIN
    this.#words[DATA_WORD] = place
    if (this.#libc.epoll_ctl(this.#epoll, EPOLL_CTL_ADD, fd, this.#events) < 0)
      throw systemError(this.#libc, 'epoll_ctl')
    this.#members[place] = member
    return place
  }

  /** The kernel has forgotten a closed descriptor by itself: then `fd` is -1. */
  leave(fd: number, place: number): void {
    if (fd >= 0) this.#libc.epoll_ctl(this.#epoll, EPOLL_CTL_DEL, fd, this.#events)
    this.#members[place] = undefined
  }

  /** Hot. `member` has frames that wait for more: the next look sends them, or the event loop if the program does not poll. */
  hold(member: Readable): void {
    if (member.isHeld) return
    member.isHeld = true
    this.#held.push(member)
    if (this.#willRelease) return
    this.#willRelease = true
    setImmediate(this.#release)
  }

  readonly #release = (): void => {
    this.#willRelease = false
    this.#endBursts()
  }

  #endBursts(): void {
    for (let member = this.#held.pop(); member !== undefined; member = this.#held.pop()) {
      member.isHeld = false
      member.endBurst()
    }
  }

  look(): void {
    this.#endBursts()
    this.looks++
    this.isStale = false
    const count = this.#libc.epoll_wait(this.#epoll, this.#events, EVENTS_MAX, 0)
    for (let event = 0; event < count; event++) {
      const member = this.#members[this.#words[(event * EVENT_SIZE) / 4 + DATA_WORD] as number]
      if (member !== undefined) member.isReadable = true
    }
  }
}

let ofThread: Readiness | undefined

/** The thread's one; opened by its first connection. */
export function readinessOf(libc: Libc): Readiness {
  ofThread ??= new Readiness(libc)
  return ofThread
}
