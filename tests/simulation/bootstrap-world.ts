/**
 * Systems of listeners with a bootstrap, clients that search for it, and strangers at hashed ports. A client finds the listener
 * that it has called or none, and both ends of a channel have seen the same bytes.
 */
import type { SimulatedHost } from '../../nic/simulated/index.ts'
import { type Agreed, BootstrapProcess } from './bootstrap-process.ts'
import { World } from './world.ts'

export class BootstrapWorld extends World<BootstrapProcess> {
  protected override readonly pausesUs = [0, 100, 1000, 10_000, 100_000]
  readonly #agreed: Agreed = new Map()
  readonly #all: BootstrapProcess[] = []

  get finished(): number {
    return this.#all.reduce((sum, { found }) => sum + found, 0)
  }

  get returned(): number {
    return this.#all.reduce((sum, { missed }) => sum + missed, 0)
  }

  async open(host: SimulatedHost): Promise<BootstrapProcess> {
    const process = new BootstrapProcess(this.network, this.kernels, host, this.random, this.#agreed)
    this.#all.push(process)
    return process
  }

  connect(): void {}

  forget(process: BootstrapProcess): void {
    process.isOver = true
  }

  check(): void {}

  override settleDown(): void {
    for (const player of this.players) player.settleDown()
  }

  findUnfinished(): string | undefined {
    const all = this.players.flatMap(({ listeners }) => [...listeners.values()])
    for (const player of this.players) {
      const why = player.findUnfinished(all)
      if (why !== undefined) return why
    }
    return undefined
  }
}
