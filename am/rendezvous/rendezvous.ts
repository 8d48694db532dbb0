/**
 * Rendezvous of endpoints on one host: each thread has one abstract unix socket, at which callers ask for its
 * endpoints, and for callers of other network namespaces one in the rendezvous folder. It carries no active messages, only the exchange that connects two virtual interfaces; the connection
 * then stays as their lifeline.
 */

import { once } from 'node:events'
import net from 'node:net'
import {
  endpointsName,
  markOwn,
  openLog,
  type Publication,
  publishSocket,
  reasonAgainstFolder,
  refreshRegularly,
  refuseDescriptors,
} from '../../nic/index.ts'
import { rangeError } from '../errors.ts'
import { rendezvousPath, thisThread } from './endpoint-name.ts'
import { Reception, type RendezvousHost } from './reception.ts'

const log = openLog('fastsockets:am:rendezvous')

/** Most callers that have not sent their OPEN; further ones are disconnected. */
const CALLERS_MAX = 1024

class Rendezvous {
  readonly #hosts = new Map<string, RendezvousHost>()
  readonly #referenced = new Set<string>()
  readonly #reception = new Reception(CALLERS_MAX, 'host', endpoint => this.#hosts.get(endpoint))
  readonly #neighbours = new Reception(CALLERS_MAX, 'folder', endpoint => this.#hosts.get(endpoint))
  #server: net.Server | undefined
  #inFolder: Publication | undefined
  #endRefreshing = (): void => {}
  #listening: Promise<unknown> | undefined

  /** Resolves when callers can reach the endpoint. */
  async open(endpoint: string, host: RendezvousHost): Promise<void> {
    if (this.#hosts.has(endpoint)) throw rangeError(`endpoint ${endpoint} is open already`)
    this.#hosts.set(endpoint, host)
    if (this.#server === undefined) {
      this.#server = net.createServer(socket => this.#reception.meet(socket))
      markOwn(this.#server)
      // For example, out of descriptors for a caller: the program must not end for that.
      this.#server.on('error', error => log('%s', error.message))
      // `exclusive`: a cluster worker answers for its own endpoints.
      this.#server.listen({ path: rendezvousPath(thisThread), exclusive: true })
      this.#server.unref()
      refuseDescriptors(this.#server)
      this.#publish()
      this.#endRefreshing = refreshRegularly(() => this.#refresh())
      this.#listening = once(this.#server, 'listening')
    }
    try {
      await this.#listening
    } catch (error) {
      // For example, out of descriptors: the next endpoint tries again.
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
    this.#endRefreshing()
    this.#inFolder?.close()
    this.#inFolder = undefined
  }

  /** Publishes anew if the folder was emptied, deleted and made again, or full. */
  #refresh(): void {
    const state = this.#inFolder?.stateOf(endpointsName(thisThread))
    if ((state ?? 'missing') !== 'missing' || reasonAgainstFolder(true) !== undefined) return
    this.#inFolder?.close()
    this.#inFolder = undefined
    this.#publish()
  }

  #publish(): void {
    const server = net.createServer(socket => this.#neighbours.meet(socket))
    markOwn(server)
    const publication = publishSocket(server, [endpointsName(thisThread)])
    if (typeof publication === 'string') log('other network namespaces cannot ask: %s', publication)
    else this.#inFolder = publication
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
}

/** One per thread. */
export const rendezvous = new Rendezvous()
