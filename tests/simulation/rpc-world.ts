/** Systems of services: each handler runs at most once, each call ends once, and nothing is under way for ever. */
import type { SimulatedHost } from '../../nic/simulated/index.ts'
import { Broken } from './ledger.ts'
import { type Call, describe, RpcProcess } from './rpc-process.ts'
import { World } from './world.ts'

export class RpcWorld extends World<RpcProcess> {
  readonly #calls: Call[] = []

  get finished(): number {
    return this.#calls.filter(({ outcome }) => outcome !== 'pending').length
  }

  get returned(): number {
    return this.#calls.filter(({ outcome }) => outcome === 'error').length
  }

  open(host: SimulatedHost): Promise<RpcProcess> {
    return RpcProcess.open(this.network, this.kernels, host, this.random, this.#calls)
  }

  /** A process that is gone, or cannot be reached in time, is not called. */
  connect(from: RpcProcess, to: RpcProcess): void {
    this.watch(
      from.connect(to).catch((error: Error & { code?: string }) => {
        if (error.code !== 'ERR_RPC_UNAVAILABLE') throw error
      }),
    )
  }

  forget(process: RpcProcess): void {
    process.isOver = true
    for (const one of this.players) one.clients.delete(process)
  }

  check(): void {
    for (const { endpoint } of this.players) {
      for (const { creditsLeft } of endpoint.stats().peers)
        if (creditsLeft < 0) throw new Broken(`${creditsLeft} credits`)
    }
  }

  findUnfinished(): string | undefined {
    for (const call of this.#calls) {
      if (call.outcome === 'pending' && call.from.isAlive) return `${describe(call)} is under way`
      if (call.begun > call.ended && call.to.isAlive) return `the handler of ${describe(call)} does not end`
    }
    return undefined
  }
}
