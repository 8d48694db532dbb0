import { readFileSync } from 'node:fs'

const UNPRIVILEGED_MIN = 1024
const PORT_MAX = 65535

/**
 * Local ports for the clients of a listener whose connections never had a TCP handshake. They lie outside the kernel's
 * ephemeral range, so that they meet no plain TCP client of the same listener, and each is given out once at a time.
 */
export class SyntheticPorts {
  /** By port. */
  readonly #isUsed = new Uint8Array(PORT_MAX + 1)
  #usedCount = 0
  readonly #first: number
  readonly #last: number
  #next: number

  constructor(range = largestFreeRange(ephemeralRange())) {
    this.#first = range[0]
    this.#last = range[1]
    this.#next = this.#first
  }

  /** 0 if all are taken. */
  allocate(): number {
    const count = this.#last - this.#first + 1
    if (this.#usedCount >= count) return 0
    while (this.#isUsed[this.#next]) this.#advance()
    const port = this.#next
    this.#isUsed[port] = 1
    this.#usedCount++
    this.#advance()
    return port
  }

  release(port: number): void {
    this.#usedCount -= this.#isUsed[port] as number
    this.#isUsed[port] = 0
  }

  #advance(): void {
    this.#next = this.#next === this.#last ? this.#first : this.#next + 1
  }
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
