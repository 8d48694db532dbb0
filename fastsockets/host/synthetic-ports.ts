import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { threadId } from 'node:worker_threads'

const require = createRequire(import.meta.url)

const UNPRIVILEGED_MIN = 1024
const PORT_MAX = 65535

/**
 * The workers of a cluster share listeners, and so may processes and threads that share a port: each has a stripe of the ports,
 * and goes on to others' only when that is full.
 */
const STRIPES = 64

/**
 * A peer gets no further port while it holds so many times as many as are free: one peer alone has at most three quarters,
 * of several each may have as many, and a newcomer always finds some. (Dynamic thresholds, Choudhury and Hahne, 1998.)
 */
const HELD_PER_FREE = 3

/** Every `stride`-th port, beginning with number `offset`. */
export interface Stripe {
  readonly stride: number
  readonly offset: number
}

/**
 * Local ports for the clients of a listener whose connections never had a TCP handshake. They lie outside the kernel's
 * ephemeral range, so that they meet no plain TCP client of the same listener, and each is given out once at a time.
 */
export class SyntheticPorts {
  /** By port. */
  readonly #isUsed = new Uint8Array(PORT_MAX + 1)
  readonly #first: number
  readonly #last: number
  readonly #findStripe: () => Stripe
  #stripe: Stripe | undefined
  #usedCount = 0
  /** Of those of the stripe. */
  #ownLeft = 0
  #nextOwn = 0
  #next: number

  constructor(range = largestFreeRange(ephemeralRange()), findStripe = stripeOfThread) {
    this.#first = range[0]
    this.#last = range[1]
    this.#findStripe = findStripe
    this.#next = this.#first
  }

  get freeCount(): number {
    return this.#last - this.#first + 1 - this.#usedCount
  }

  /** 0 if all are taken. */
  allocate(): number {
    const { stride, offset } = this.#useStripe()
    if (this.freeCount === 0) return 0
    let port = 0
    // Each comes again only after all the others: who has just gone is not taken for who comes.
    if (this.#ownLeft > 0) {
      do {
        port = this.#nextOwn
        this.#nextOwn = port + stride <= this.#last ? port + stride : this.#first + offset
      } while (!this.reserve(port))
    } else {
      do {
        port = this.#next
        this.#next = port === this.#last ? this.#first : port + 1
      } while (!this.reserve(port))
    }
    return port
  }

  /** The program listens on it: no client shall seem to have it. False if it is taken. */
  reserve(port: number): boolean {
    this.#useStripe()
    if (port < this.#first || port > this.#last || this.#isUsed[port] === 1) return false
    this.#isUsed[port] = 1
    this.#usedCount++
    if (this.#isOwn(port)) this.#ownLeft--
    return true
  }

  release(port: number): void {
    if (this.#isUsed[port] !== 1) return
    this.#isUsed[port] = 0
    this.#usedCount--
    if (this.#isOwn(port)) this.#ownLeft++
  }

  #isOwn(port: number): boolean {
    const { stride, offset } = this.#stripe as Stripe
    return (port - this.#first) % stride === offset
  }

  /** Which one is known once the program listens. */
  #useStripe(): Stripe {
    if (this.#stripe !== undefined) return this.#stripe
    this.#stripe = this.#findStripe()
    const { stride, offset } = this.#stripe
    this.#nextOwn = this.#first + offset
    this.#ownLeft = Math.max(0, Math.floor((this.#last - this.#nextOwn) / stride) + 1)
    return this.#stripe
  }
}

/** The ports of one peer's connections. A peer is a channel, or all channels of another user. */
export class PortShare {
  readonly #ports: SyntheticPorts
  #heldCount = 0

  constructor(ports = clientPorts) {
    this.#ports = ports
  }

  /** 0 if this peer has its share, or all are taken. */
  allocate(): number {
    if (this.#heldCount >= HELD_PER_FREE * this.#ports.freeCount) return 0
    const port = this.#ports.allocate()
    if (port > 0) this.#heldCount++
    return port
  }

  /** 0 is none. */
  release(port: number): void {
    if (port === 0) return
    this.#ports.release(port)
    this.#heldCount--
  }
}

/** Of workers no two among the first 64 have the same. */
function stripeOfThread(): Stripe {
  const { worker } = require('node:cluster') as { worker?: { id: number } }
  return { stride: STRIPES, offset: (worker?.id ?? process.pid + threadId) % STRIPES }
}

/** Those of this thread. */
export const clientPorts = new SyntheticPorts()

function ephemeralRange(): [number, number] {
  try {
    const text = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8')
    const [first, last] = text.trim().split(/\s+/).map(Number)
    if (first !== undefined && last !== undefined && first > 0 && last >= first) return [first, last]
  } catch {
    // Without /proc, the kernel's default.
  }
  return [32768, 60999]
}

function largestFreeRange([first, last]: [number, number]): [number, number] {
  const below: [number, number] = [UNPRIVILEGED_MIN, first - 1]
  const above: [number, number] = [last + 1, PORT_MAX]
  const size = ([from, to]: [number, number]): number => to - from
  if (size(below) < 0 && size(above) < 0) return [UNPRIVILEGED_MIN, PORT_MAX]
  return size(below) >= size(above) ? below : above
}
