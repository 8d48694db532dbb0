import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { threadId } from 'node:worker_threads'

const require = createRequire(import.meta.url)

const UNPRIVILEGED_MIN = 1024
const PORT_MAX = 65535

/**
 * Workers of a cluster, and processes or threads with a shared port, serve the same listener address. Each takes ports
 * from its own stripe first, and from the others only when its stripe is full.
 */
const STRIPES = 64

/**
 * A peer may hold at most this many times the number of free ports. A single peer gets at most three quarters of all;
 * several peers have the same limit; a new peer always finds free ports. (Dynamic thresholds, Choudhury and Hahne,
 * 1998.)
 */
const ALLOCATED_PER_FREE = 3

/** Every `stride`-th port, beginning with number `offset`. */
export interface Stripe {
  readonly stride: number
  readonly offset: number
}

/**
 * The pool of client ports for fast connections, which have no TCP handshake and so no port from the kernel. The
 * ports lie outside the kernel's ephemeral range, so that no plain TCP client of the same listener has the same. No
 * port is in use twice.
 */
export class SyntheticPorts {
  /** Indexed by port. */
  readonly #isUsed = new Uint8Array(PORT_MAX + 1)
  readonly #first: number
  readonly #last: number
  readonly #findStripe: () => Stripe
  #stripe: Stripe | undefined
  #usedCount = 0
  /** Free ports of the own stripe. */
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

  /** A port, or 0 if all are taken. */
  allocate(): number {
    const { stride, offset } = this.#useStripe()
    if (this.freeCount === 0) return 0
    let port = 0
    // Round robin: a released port is used again as late as possible, so that two clients are not mistaken for one.
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

  /** Reserves one port, such as that of a listener: no client gets it. False if it is taken, or not in the pool. */
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

  /** Determined on first use: a cluster worker knows its id only after start-up. */
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
  #allocatedCount = 0

  constructor(ports = clientPorts) {
    this.#ports = ports
  }

  /** A port, or 0 if this peer has its share or all ports are taken. */
  allocate(): number {
    if (this.#allocatedCount >= ALLOCATED_PER_FREE * this.#ports.freeCount) return 0
    const port = this.#ports.allocate()
    if (port > 0) this.#allocatedCount++
    return port
  }

  /** Ignores 0, the result of a failed `allocate`. */
  release(port: number): void {
    if (port === 0) return
    this.#ports.release(port)
    this.#allocatedCount--
  }
}

/** The first 64 workers of a cluster have different stripes. */
function stripeOfThread(): Stripe {
  const { worker } = require('node:cluster') as { worker?: { id: number } }
  return { stride: STRIPES, offset: (worker?.id ?? process.pid + threadId) % STRIPES }
}

/** The pool of this thread. */
export const clientPorts = new SyntheticPorts()

function ephemeralRange(): [number, number] {
  try {
    const text = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8')
    const [first, last] = text.trim().split(/\s+/).map(Number)
    if (first !== undefined && last !== undefined && first > 0 && last >= first) return [first, last]
  } catch {
    // Without /proc: the kernel's default range follows.
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
