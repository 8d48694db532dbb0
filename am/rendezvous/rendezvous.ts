/**
 * Where endpoints meet: one abstract unix socket for each thread, on which its endpoints are asked for. It carries no
 * messages, only what it takes to connect two virtual interfaces; the connection then stays as their lifeline.
 */

import { once } from 'node:events'
import net from 'node:net'
import debug from 'debug'
import { markOwn } from '../../nic/index.ts'
import { rangeError } from '../errors.ts'
import { ControlConnection } from './control-connection.ts'
import { CONTROL_VERSION, NAME_MAX, type Open, type RefusalCode } from './control-messages.ts'
import { rendezvousPath, thisThread } from './endpoint-name.ts'

const log = debug('fastsockets:am:rendezvous')

/** Callers who have not said whom they want yet; more are hung up on. */
const CALLERS_MAX = 1024
const OPEN_TIMEOUT_MS = 2000

/** An endpoint of this thread, as a caller meets it. */
export interface RendezvousHost {
  answer(open: Open, connection: ControlConnection): void
}

class Rendezvous {
  readonly #hosts = new Map<string, RendezvousHost>()
  readonly #referenced = new Set<string>()
  #server: net.Server | undefined
  #listening: Promise<unknown> | undefined
  #callers = 0

  /** Resolves when callers can reach the endpoint. */
  async open(endpoint: string, host: RendezvousHost): Promise<void> {
    if (this.#hosts.has(endpoint)) throw rangeError(`endpoint ${endpoint} is open already`)
    this.#hosts.set(endpoint, host)
    if (this.#server === undefined) {
      this.#server = net.createServer(socket => this.#meet(socket))
      markOwn(this.#server)
      // `exclusive`: a cluster worker answers for its own endpoints.
      this.#server.listen({ path: rendezvousPath(thisThread), exclusive: true })
      this.#server.unref()
      this.#listening = once(this.#server, 'listening')
    }
    try {
      await this.#listening
    } catch (error) {
      // No descriptors, perhaps: the next endpoint tries anew.
      this.close(endpoint)
      throw error
    }
  }

  close(endpoint: string): void {
    this.unref(endpoint)
    this.#hosts.delete(endpoint)
    if (this.#hosts.size > 0) return
    this.#server?.close()
    this.#server = undefined
  }

  /** An endpoint that waits for callers keeps the event loop alive, as a server does. */
  ref(endpoint: string): void {
    this.#referenced.add(endpoint)
    this.#server?.ref()
  }

  unref(endpoint: string): void {
    this.#referenced.delete(endpoint)
    if (this.#referenced.size === 0) this.#server?.unref()
  }

  #meet(socket: net.Socket): void {
    socket.unref()
    if (this.#callers >= CALLERS_MAX) return void socket.destroy()
    this.#callers++
    const connection = new ControlConnection(socket)
    const timer = setTimeout(() => connection.destroy(), OPEN_TIMEOUT_MS)
    timer.unref()
    let isMet = false
    const meet = (): void => {
      if (!isMet) this.#callers--
      isMet = true
      clearTimeout(timer)
    }
    connection.listen({
      handleControl: message => {
        if (message.op !== 'open') return connection.destroy()
        meet()
        connection.hush()
        this.#introduce(message, connection)
      },
      handleControlEnd: meet,
    })
  }

  #introduce(open: Open, connection: ControlConnection): void {
    if (open.version !== CONTROL_VERSION) {
      return refuse(connection, 'VERSION', `version ${open.version} is not ${CONTROL_VERSION}`)
    }
    const host = this.#hosts.get(open.to)
    if (host === undefined)
      return refuse(connection, 'NO_SUCH_ENDPOINT', `there is no endpoint ${open.to} here`)
    host.answer(open, connection)
  }
}

export function refuse(connection: ControlConnection, code: RefusalCode, text: string): void {
  log('refused: %s', text)
  connection.send({ op: 'refuse', code, text: text.slice(0, NAME_MAX) })
  connection.end()
}

/** One for this thread. */
export const rendezvous = new Rendezvous()
