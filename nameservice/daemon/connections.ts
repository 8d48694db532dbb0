/** Limits the connections of all listeners, and ends the longest idle one if there are too many. */
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Limits } from './settings-schema.ts'
import { type Caller, limitFor } from './shares.ts'

/** Descriptors reserved for the store, logs, and other files. */
const DESCRIPTORS_KEPT = 256
/** Most requests under way on one connection: they all arrive before the daemon sees that the peer reads no answers. */
const PIPELINED_MAX = 64

/** A connection: its owner, and the number of its requests under way. */
interface Load {
  readonly owner: Owner
  requests: number
}

/** Connections of one owner. */
interface Owner {
  readonly key: string
  count: number
  /** Connections without a request under way, the longest idle first. */
  readonly idle: Set<Socket>
}

export class Connections {
  readonly #max: number
  readonly #maxPerOwner: number
  readonly #loads = new Map<Socket, Load>()
  readonly #owners = new Map<string, Owner>()
  /** Idle connections of all owners, the longest idle first. */
  readonly #idle = new Set<Socket>()
  readonly #handleClose: (this: ServerResponse) => void

  constructor({ connections, connectionsPerOwner }: Pick<Limits, 'connections' | 'connectionsPerOwner'>) {
    this.#max = Math.min(connections, descriptorsMax() - DESCRIPTORS_KEPT)
    // If the process may open fewer descriptors than the settings allow, each owner's share shrinks in proportion.
    this.#maxPerOwner = Math.max(1, Math.floor((connectionsPerOwner * this.#max) / connections))
    const finish = (socket: Socket): void => this.#finish(socket)
    // One function for all requests, instead of a closure for each.
    this.#handleClose = function () {
      finish(this.req.socket)
    }
  }

  get count(): number {
    return this.#loads.size
  }

  /**
   * Admits a connection. At a limit, of the owner or in all, the longest idle connection ends instead. False if
   * none is idle: then the caller must close this one.
   */
  admit(socket: Socket, caller: Caller): boolean {
    const known = this.#owners.get(caller.owner)
    if (known !== undefined && known.count >= this.#maxPerOwner && !this.#endOldest(known.idle)) return false
    if (this.#loads.size >= limitFor(caller, this.#max) && !this.#endOldest(this.#idle)) return false
    const owner = this.#owners.get(caller.owner) ?? { key: caller.owner, count: 0, idle: new Set() }
    this.#owners.set(owner.key, owner)
    owner.count += 1
    owner.idle.add(socket)
    this.#loads.set(socket, { owner, requests: 0 })
    this.#idle.add(socket)
    socket.once('close', () => this.#forget(socket))
    return true
  }

  #endOldest(idle: ReadonlySet<Socket>): boolean {
    const [oldest] = idle
    if (oldest === undefined) return false
    this.#forget(oldest)
    oldest.destroy()
    return true
  }

  isBusy(socket: Socket): boolean {
    return (this.#loads.get(socket)?.requests ?? 0) > 0
  }

  /**
   * False if the request must not be answered: its connection is refused, has ended, or ends now with too many
   * requests.
   */
  handleRequest({ socket }: IncomingMessage, response: ServerResponse): boolean {
    const load = this.#loads.get(socket)
    if (load === undefined) return false
    if (load.requests === PIPELINED_MAX) {
      socket.destroy()
      return false
    }
    load.requests += 1
    if (load.requests === 1) {
      this.#idle.delete(socket)
      load.owner.idle.delete(socket)
    }
    response.on('close', this.#handleClose)
    return true
  }

  /** Whether `socket`, on which no bytes have moved for the idle time, waits for its peer and not for the daemon. */
  isStuck(socket: Socket): boolean {
    return !this.isBusy(socket) || socket.writableLength > 0
  }

  #finish(socket: Socket): void {
    const load = this.#loads.get(socket)
    if (load === undefined) return
    load.requests -= 1
    if (load.requests > 0) return
    this.#idle.add(socket)
    load.owner.idle.add(socket)
  }

  #forget(socket: Socket): void {
    const load = this.#loads.get(socket)
    if (load === undefined) return
    const { owner } = load
    this.#loads.delete(socket)
    this.#idle.delete(socket)
    owner.idle.delete(socket)
    owner.count -= 1
    if (owner.count === 0) this.#owners.delete(owner.key)
  }
}

function descriptorsMax(): number {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft)
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
