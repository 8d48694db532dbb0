import { systemError } from '../host/socket-errors.ts'
import type { SocketChannel } from '../stream/socket-channel.ts'
import type { MessageSocket } from './message-socket.ts'
import { rawPeers } from './raw-peers.ts'
import type { RawServer } from './raw-server.ts'
import { assertOptions, assertSignal, type Pollable, type RawSocket } from './raw-socket.ts'

export type Member = RawSocket | MessageSocket | RawServer | RawServer<MessageSocket>

/** Most messages that one `poll` handles on each channel. */
const POLL_MESSAGES = 64
/** The members of all queues of this thread: each socket or server is in one queue at most. */
const queued = new WeakSet<Pollable>()

/**
 * Many sockets and servers in one place (VIA's completion queue, Fast Sockets' select): which of them has something to
 * read, or a connection to accept? Ready members are returned in rotation, each as long as it is ready.
 */
export class CompletionQueue {
  readonly #members = new Set<Pollable>()
  /** Members that were ready at the last look, each once, in the order in which they will be returned. */
  readonly #ready: Pollable[] = []
  readonly #isQueued = new Set<Pollable>()
  /** The distinct channels of the members, and the number of members on each. */
  #channels: readonly SocketChannel[] = []
  readonly #memberCounts = new Map<SocketChannel, number>()
  #serverCount = 0
  #waiter: ((member: Member) => void) | undefined

  /**
   * Adds a member; each belongs to one queue at a time, and closing it removes it. To move a member, remove it from its
   * queue first: otherwise a `wait` there would never return it. Throws `ERR_FASTSOCKETS_QUEUED`, and `EBADF` for a
   * closed member.
   */
  add(member: Member): void {
    const pollable = member as unknown as Pollable
    if (typeof pollable?.watch !== 'function') {
      const error = new TypeError('a member must be a raw socket or a raw server')
      throw Object.assign(error, { code: 'ERR_INVALID_ARG_TYPE' })
    }
    if (this.#members.has(pollable)) return
    if (pollable.isClosed) throw systemError('EBADF', 'poll')
    if (queued.has(pollable)) {
      const error = new Error('it is a member of another completion queue: remove it there first')
      throw Object.assign(error, { code: 'ERR_FASTSOCKETS_QUEUED' })
    }
    queued.add(pollable)
    this.#members.add(pollable)
    this.#count(member, 1)
    if (this.#waiter !== undefined) pollable.setAwaited(true)
    pollable.watch(this)
  }

  remove(member: Member): void {
    const pollable = member as unknown as Pollable
    if (!this.#members.delete(pollable)) return
    queued.delete(pollable)
    pollable.watch(undefined)
    pollable.setAwaited(false)
    this.#count(member, -1)
    if (!this.#isQueued.delete(pollable)) return
    this.#ready.splice(this.#ready.indexOf(pollable), 1)
  }

  /**
   * The next member that is ready, or undefined. Takes in what has arrived. Never waits, and needs the event loop only
   * for a server to meet a new peer.
   */
  poll(): Member | undefined {
    // A server's next connection may arrive on any channel.
    const channels = this.#serverCount > 0 ? rawPeers().openChannels : this.#channels
    for (let i = 0; i < channels.length; i++) channels[i]?.pollNow(POLL_MESSAGES)
    for (const member of this.#members) member.look()
    return this.#nextReady()
  }

  /**
   * Resolves with the next member that is ready; `signal` ends the wait. One wait at a time: another one rejects with
   * `ERR_FASTSOCKETS_WAITING`.
   */
  wait(options: { readonly signal?: AbortSignal } = {}): Promise<Member> {
    try {
      assertOptions(options)
      assertSignal(options.signal)
      this.#assertNotWaiting()
    } catch (error) {
      return Promise.reject(error)
    }
    const { signal } = options
    if (signal?.aborted) return Promise.reject(signal.reason)
    const ready = this.poll()
    if (ready !== undefined) return Promise.resolve(ready)
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        this.#endWait()
        reject(signal?.reason)
      }
      signal?.addEventListener('abort', abort, { once: true })
      this.#waiter = member => {
        signal?.removeEventListener('abort', abort)
        this.#endWait()
        resolve(member)
      }
      for (const member of this.#members) member.setAwaited(true)
    })
  }

  /** For members: there may be something to read. */
  handleReadable(member: Pollable): void {
    if (!this.#isQueued.has(member)) {
      this.#isQueued.add(member)
      this.#ready.push(member)
    }
    if (this.#waiter === undefined) return
    const ready = this.#nextReady()
    if (ready !== undefined) this.#waiter(ready)
  }

  #nextReady(): Member | undefined {
    for (let left = this.#ready.length; left > 0; left--) {
      const member = this.#ready.shift() as Pollable
      if (member.isReadable) {
        this.#ready.push(member)
        return member as unknown as Member
      }
      this.#isQueued.delete(member)
    }
    return undefined
  }

  #assertNotWaiting(): void {
    if (this.#waiter === undefined) return
    throw Object.assign(new Error('one wait at a time'), { code: 'ERR_FASTSOCKETS_WAITING' })
  }

  #endWait(): void {
    this.#waiter = undefined
    for (const member of this.#members) member.setAwaited(false)
  }

  /** `change`: 1 for an added member, -1 for a removed one. */
  #count(member: Member, change: 1 | -1): void {
    if ('accept' in member) {
      this.#serverCount += change
      return
    }
    const channel = (member as unknown as Pollable).polledChannel()
    if (channel === undefined) return
    const before = this.#memberCounts.get(channel) ?? 0
    const count = before + change
    if (count > 0) this.#memberCounts.set(channel, count)
    else this.#memberCounts.delete(channel)
    if (before === 0 || count === 0) this.#channels = [...this.#memberCounts.keys()]
  }
}
