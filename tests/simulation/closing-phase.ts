/** libuv's closing phase of one simulated process: what was closed last is first, and ticks run after each callback. */
import { drainTicks } from '../../fastsockets/host/node-internals.ts'
import type { SimulatedHost } from '../../nic/simulated/index.ts'

export class ClosingPhase {
  readonly #host: SimulatedHost
  #due: (() => void)[] = []

  constructor(host: SimulatedHost) {
    this.#host = host
  }

  add(action: () => void): void {
    if (this.#due.push(action) === 1) this.#host.post(this.#host.hardware.turnUs, () => this.#run())
  }

  #run(): void {
    const due = this.#due
    this.#due = []
    this.#host.timeline.hasSettled = true
    for (let action = due.pop(); action !== undefined; action = due.pop()) {
      action()
      drainTicks()
    }
  }
}
