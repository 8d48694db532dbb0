/** All connections of all listeners: how many there may be, and which goes when there are too many. */
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Descriptors that are kept for the store, logs, and whatever else is opened. */
const DESCRIPTORS_KEPT = 256
/** Requests under way on one connection. They all come in at once, before any of their answers can be seen to be unread. */
const PIPELINED_MAX = 64

/** How many requests are under way on a connection. */
interface Load {
  requests: number
}

export class Connections {
  readonly #max: number
  readonly #loads = new Map<Socket, Load>()
  /** Those without any request under way, the longest idle first. */
  readonly #idle = new Set<Socket>()
  readonly #handleClose: (this: ServerResponse) => void

  constructor(max: number) {
    this.#max = Math.min(max, descriptorsMax() - DESCRIPTORS_KEPT)
    const finish = (socket: Socket): void => this.#finish(socket)
    // One function for all requests.
    this.#handleClose = function () {
      finish(this.req.socket)
    }
  }

  get count(): number {
    return this.#loads.size
  }

  /** False if there are too many, and none is idle: then the caller must go. Else the longest idle one does. */
  admit(socket: Socket): boolean {
    if (this.#loads.size >= this.#max) {
      const [oldest] = this.#idle
      if (oldest === undefined) return false
      this.#forget(oldest)
      oldest.destroy()
    }
    this.#loads.set(socket, { requests: 0 })
    this.#idle.add(socket)
    socket.once('close', () => this.#forget(socket))
    return true
  }

  isBusy(socket: Socket): boolean {
    return (this.#loads.get(socket)?.requests ?? 0) > 0
  }

  /** False if it shall not be answered, because there are too many on its connection, which is ended. */
  handleRequest({ socket }: IncomingMessage, response: ServerResponse): boolean {
    const load = this.#loads.get(socket)
    if (load === undefined) return true
    if (load.requests === PIPELINED_MAX) {
      socket.destroy()
      return false
    }
    load.requests += 1
    if (load.requests === 1) this.#idle.delete(socket)
    response.on('close', this.#handleClose)
    return true
  }

  /** Whether `socket`, on which nothing has moved for a while, waits for its peer. */
  isStuck(socket: Socket): boolean {
    return !this.isBusy(socket) || socket.writableLength > 0
  }

  #finish(socket: Socket): void {
    const load = this.#loads.get(socket)
    if (load === undefined) return
    load.requests -= 1
    if (load.requests === 0) this.#idle.add(socket)
  }

  #forget(socket: Socket): void {
    this.#loads.delete(socket)
    this.#idle.delete(socket)
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
