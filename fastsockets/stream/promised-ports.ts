/**
 * Client ports that a server promises before it is asked. A client that takes itself for connected, because the server is
 * busy, has its port all the same (decision 0006).
 *
 * Each CONNECT to an address uses up the oldest promise, if there is one, whatever the answer; each ACCEPT promises up to
 * four more. Messages keep their order both ways, so both sides know which CONNECT has which port.
 */
import type { PortShare } from '../host/synthetic-ports.ts'
import type { Stream } from './stream.ts'
import { PORTS_PROMISED_MAX } from './stream-layout.ts'

const PORT_MAX = 0xffff
/** In place of a stream's promised port: it has asked, and waits here for an answer or a promise. */
const PORT_AWAITED = -1

/** The server's side. */
export class PromisedPorts {
  readonly #ports: number[] = []
  readonly #max: number
  readonly #share: () => PortShare

  constructor(max: number, share: () => PortShare) {
    this.#max = max
    this.#share = share
  }

  /** What the CONNECT that is handled now was promised; 0 if nothing. */
  take(): number {
    return this.#ports.shift() ?? 0
  }

  /** Up to four more; the rest are 0. */
  promise(): readonly [number, number, number, number] {
    return [this.#add(), this.#add(), this.#add(), this.#add()]
  }

  #add(): number {
    if (this.#ports.length >= this.#max) return 0
    const port = this.#share().allocate()
    if (port > 0) this.#ports.push(port)
    return port
  }

  clear(): void {
    for (const port of this.#ports.splice(0)) this.#share().release(port)
  }
}

/** It is promised, or there is none. */
export function knowsItsPort({ promisedPort, unixPath }: Stream): boolean {
  return promisedPort > 0 || unixPath !== undefined
}

/** A stream that the program takes for connected says so from now on. */
export function promisePort(stream: Stream, port: number): void {
  stream.promisedPort = port
  if (stream.state === 'presumed' && stream.addresses !== undefined) stream.addresses.clientPort = port
}

/** The client's side. */
export class AwaitedPorts {
  /** Those that have asked, in that order, and have no promise yet. */
  readonly #asked: Stream[] = []
  /** Promises for those who ask next. */
  readonly #ports: number[] = []

  handleAsked(stream: Stream): void {
    const port = this.#ports.shift()
    if (port !== undefined) return promisePort(stream, port)
    stream.promisedPort = PORT_AWAITED
    this.#asked.push(stream)
  }

  /** False if others have asked before it: whoever answers out of turn would leave them here for ever. */
  handleAnswered(stream: Stream): boolean {
    if (stream.promisedPort !== PORT_AWAITED) return true
    if (this.#asked[0] !== stream) return false
    this.#asked.shift()
    stream.promisedPort = 0
    return true
  }

  /** False if it is not its turn, was promised another port, or if such ports cannot be promised; 0 is no promise. */
  handleAccepted(stream: Stream, port: number, promises: readonly number[]): boolean {
    if (!this.handleAnswered(stream)) return false
    const isAsPromised = stream.promisedPort === 0 || stream.promisedPort === port
    return isAsPromised && promises.every(promise => this.#add(promise))
  }

  #add(port: number): boolean {
    if (port === 0) return true
    if (port < 0 || port > PORT_MAX || this.#ports.length >= PORTS_PROMISED_MAX) return false
    const stream = this.#asked.shift()
    if (stream === undefined) this.#ports.push(port)
    else promisePort(stream, port)
    return true
  }
}
