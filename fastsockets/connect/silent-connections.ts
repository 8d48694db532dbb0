/**
 * Connections over TCP that have brought nothing yet. Their servers may be slow, or hold them (held-connections.ts): the
 * listener's greeting says so.
 */
import type net from 'node:net'
import { performance } from '../../nic/performance.ts'
import { setTimeout } from '../../nic/real-time.ts'
import { inTurns } from '../host/in-turns.ts'

const LOOK_MS = 50
/** Each look doubles the time to the next one; after this time a connection is looked at no more. */
const LAST_LOOK_MS = 3200

interface Silent {
  readonly socket: net.Socket
  readonly lookMs: number
  readonly delayMs: number
}

/** Calls `onSilent` for each connection that is still silent, now and then. */
export class SilentConnections {
  readonly #onSilent: (socket: net.Socket) => void
  #silent: Silent[] = []
  #isWatching = false

  constructor(onSilent: (socket: net.Socket) => void) {
    this.#onSilent = onSilent
  }

  add(socket: net.Socket, delayMs = LOOK_MS): void {
    if (delayMs > LAST_LOOK_MS) return
    this.#silent.push({ socket, lookMs: performance.now() + delayMs, delayMs })
    this.#watch()
  }

  #watch(): void {
    if (this.#isWatching || this.#silent.length === 0) return
    this.#isWatching = true
    setTimeout(this.#look, LOOK_MS).unref()
  }

  readonly #look = (): void => {
    const all = this.#silent
    this.#silent = []
    inTurns(
      all,
      part => this.#lookAt(part),
      () => {
        this.#isWatching = false
        this.#watch()
      },
    )
  }

  #lookAt(part: readonly Silent[]): void {
    const nowMs = performance.now()
    for (const one of part) {
      const { socket, lookMs, delayMs } = one
      if (socket.destroyed || socket.bytesRead > 0) continue
      if (lookMs > nowMs) this.#silent.push(one)
      else {
        if (!socket.connecting) this.#onSilent(socket)
        this.add(socket, 2 * delayMs)
      }
    }
  }
}
