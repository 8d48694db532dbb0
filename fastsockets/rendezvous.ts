/**
 * ZCopy: large chunks of a write are not sent but offered, and the receiver fetches them from the writer's memory, in one
 * copy (SDP for Windows 2006, section 4: SrcAvail, RdCompl). One chunk of a stream at a time is on offer.
 *
 * The two halves here know nothing of streams: an `Offer` is the sender's, a `Source` the receiver's.
 */
import {
  type Access,
  type CompletionSink,
  NicError,
  OK,
  type Registration,
  type RemoteMemory,
  type Status,
  type VirtualInterface,
} from '../nic/index.ts'
import { OFFER_MAX } from './stream-layout.ts'

const MAY_BE_READ: Access = { remoteRead: true, remoteWrite: false }
const NOTHING: Access = { remoteRead: false, remoteWrite: false }

/** A chunk that the peer may fetch. Its memory must not be changed before `release`. */
export class Offer {
  readonly length: number
  readonly #registration: Registration

  constructor(end: VirtualInterface, chunk: Uint8Array) {
    this.length = chunk.length
    this.#registration = end.register(chunk, MAY_BE_READ)
  }

  /** What the peer makes a `Source` of. */
  get key(): Uint8Array {
    return this.#registration.key
  }

  release(): void {
    this.#registration.deregister()
  }
}

/** The peer's chunk, as far as it has not been fetched yet. */
export class Source implements CompletionSink {
  readonly #end: VirtualInterface
  readonly #memory: RemoteMemory
  readonly #length: number
  #fetched = 0
  #completion: Status | undefined

  private constructor(end: VirtualInterface, memory: RemoteMemory, length: number) {
    this.#end = end
    this.#memory = memory
    this.#length = length
  }

  /** Undefined if the key is none, or if it does not give `length` bytes to read. */
  static open(end: VirtualInterface, key: Uint8Array, length: number): Source | undefined {
    if (length <= 0 || length > OFFER_MAX) return undefined
    try {
      const memory = end.importKey(key)
      return length <= memory.length && memory.access.remoteRead ? new Source(end, memory, length) : undefined
    } catch (error) {
      if (error instanceof NicError) return undefined
      throw error
    }
  }

  get left(): number {
    return this.#length - this.#fetched
  }

  /** The next `target.length` bytes; false if the peer's memory cannot be read, and then nothing is fetched. */
  fetch(target: Uint8Array): boolean {
    const local = this.#end.register(target, NOTHING)
    try {
      const posted = this.#end.rdmaRead(local, 0, this.#memory, this.#fetched, target.length, 0)
      if (posted !== OK || !this.#completes()) return false
    } finally {
      local.deregister()
    }
    this.#fetched += target.length
    return true
  }

  handleCompletion(_workId: number, status: Status): void {
    this.#completion = status
  }

  /** Waits for the one operation that is under way: afterwards the memory is ours alone. */
  #completes(): boolean {
    this.#completion = undefined
    while (this.#completion === undefined && this.#end.state === 'open') this.#end.pollCompletions(this, 1)
    return this.#completion === OK
  }
}
