/** One-sided access to the peer's memory over a virtual interface: one operation at a time, which is over when it returns. */
import { isMainThread } from 'node:worker_threads'
import {
  type Access,
  type CompletionSink,
  NicError,
  OK,
  type Registration,
  type RemoteMemory,
  type Status,
  type VirtualInterface,
} from '../../../nic/index.ts'
import { OFFER_MAX } from '../stream-layout.ts'
import type { PeerMemory } from './zcopy.ts'

const MAY_BE_READ: Access = { remoteRead: true, remoteWrite: false, isRevocable: true }
const MAY_BE_WRITTEN: Access = { remoteRead: false, remoteWrite: true, isRevocable: true }
const OURS_ALONE: Access = { remoteRead: false, remoteWrite: false }
/** Memory that the program gets and that is never registered again. */
const OURS_ONCE: Access = { ...OURS_ALONE, isOnce: true }

export class OneSided implements PeerMemory, CompletionSink {
  /** Terminating a worker thread frees its memory, which may be reused while the peer writes to it. */
  readonly mayPost = isMainThread
  readonly #end: VirtualInterface
  #status: Status | undefined

  constructor(end: VirtualInterface) {
    this.#end = end
  }

  import(key: Uint8Array, length: number, use: 'remoteRead' | 'remoteWrite'): RemoteMemory | undefined {
    if (length <= 0 || length > OFFER_MAX) return undefined
    try {
      const memory = this.#end.importKey(key)
      return length <= memory.length && memory.access[use] ? memory : undefined
    } catch (error) {
      if (error instanceof NicError) return undefined
      throw error
    }
  }

  register(bytes: Uint8Array, use: 'remoteRead' | 'remoteWrite'): Registration | undefined {
    return this.#tryRegister(bytes, use === 'remoteRead' ? MAY_BE_READ : MAY_BE_WRITTEN)
  }

  read(target: Uint8Array, from: RemoteMemory, at: number, isOnce: boolean): boolean {
    const local = this.#tryRegister(target, isOnce ? OURS_ONCE : OURS_ALONE)
    if (local === undefined) return false
    try {
      return this.#completes(this.#end.rdmaRead(local, 0, from, at, target.length, 0))
    } finally {
      local.deregister()
    }
  }

  write(source: Uint8Array, into: RemoteMemory): boolean {
    const local = this.#tryRegister(source, OURS_ALONE)
    if (local === undefined) return false
    try {
      return this.#completes(this.#end.rdmaWrite(local, 0, into, 0, source.length, 0))
    } finally {
      local.deregister()
    }
  }

  handleCompletion(_workId: number, status: Status): void {
    this.#status = status
  }

  #tryRegister(bytes: Uint8Array, access: Access): Registration | undefined {
    try {
      return this.#end.register(bytes, access)
    } catch (error) {
      if (error instanceof NicError) return undefined
      throw error
    }
  }

  #completes(posted: Status): boolean {
    if (posted !== OK) return false
    this.#status = undefined
    while (this.#status === undefined && this.#end.state === 'open') this.#end.pollCompletions(this, 1)
    return this.#status === OK
  }
}
