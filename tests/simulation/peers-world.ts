/**
 * Systems of processes of one host, in three network namespaces with one rendezvous folder. A client reaches the listener that
 * it has called or none; once faults have ended each listener is reached by all, and no connection is left without a channel.
 */
import type { SimulatedHost } from '../../nic/simulated/index.ts'
import { PeersProcess, type PeersSystem } from './peers-process.ts'
import { SharedFolder } from './shared-folder.ts'
import { World } from './world.ts'

export class PeersWorld extends World<PeersProcess> {
  protected override readonly pausesUs = [0, 100, 1000, 10_000, 100_000]
  readonly #all: PeersProcess[] = []
  #system: PeersSystem | undefined

  get finished(): number {
    return this.#all.reduce((sum, { reached }) => sum + reached, 0)
  }

  get returned(): number {
    return this.#all.reduce((sum, { missed }) => sum + missed, 0)
  }

  async open(host: SimulatedHost): Promise<PeersProcess> {
    const { network, kernels, random } = this
    this.#system ??= {
      network,
      kernels,
      random,
      folder: new SharedFolder(),
      strangePlaces: new Set(),
      owners: new Map(),
    }
    const process = new PeersProcess(this.#system, host)
    this.#all.push(process)
    return process
  }

  connect(): void {}

  forget(process: PeersProcess): void {
    process.isOver = true
  }

  /** Within a host a NIC or a link that dies is a process that is killed. */
  override handleEnd(process: PeersProcess): void {
    const { host } = process
    if (host.isCutOff) {
      host.kill()
      this.kernels.closeAll(host)
    }
    if (host.state === 'dead') process.die()
  }

  check(): void {}

  override settleDown(): void {
    for (const one of this.#all) one.settleDown()
  }

  findUnfinished(): string | undefined {
    for (const player of this.players) {
      const why = player.findUnfinished(this.players)
      if (why !== undefined) return why
    }
    return undefined
  }

  override dispose(): void {
    this.#system?.folder.close()
  }
}
