/** All connections of all listeners: how many there may be, and which goes when there are too many. */
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Descriptors that are kept for the store, logs, and whatever else is opened. */
const DESCRIPTORS_KEPT = 256

export class Connections {
  readonly #max: number
  /** With the number of requests that are under way on each. */
  readonly #busy = new Map<Socket, number>()
  /** Those without any, the longest idle first. */
  readonly #idle = new Set<Socket>()

  constructor(max: number) {
    this.#max = Math.min(max, descriptorsMax() - DESCRIPTORS_KEPT)
  }

  get count(): number {
    return this.#busy.size
  }

  /** False if there are too many, and none is idle: then the caller must go. Else the longest idle one does. */
  admit(socket: Socket): boolean {
    if (this.#busy.size >= this.#max) {
      const [oldest] = this.#idle
      if (oldest === undefined) return false
      this.#forget(oldest)
      oldest.destroy()
    }
    this.#busy.set(socket, 0)
    this.#idle.add(socket)
    socket.once('close', () => this.#forget(socket))
    return true
  }

  isBusy(socket: Socket): boolean {
    return (this.#busy.get(socket) ?? 0) > 0
  }

  handleRequest({ socket }: IncomingMessage, response: ServerResponse): void {
    this.#busy.set(socket, (this.#busy.get(socket) ?? 0) + 1)
    this.#idle.delete(socket)
    response.once('close', () => {
      const left = this.#busy.get(socket)
      if (left === undefined) return
      this.#busy.set(socket, left - 1)
      if (left === 1) this.#idle.add(socket)
    })
  }

  #forget(socket: Socket): void {
    this.#busy.delete(socket)
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
