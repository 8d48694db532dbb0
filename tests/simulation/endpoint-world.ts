/** Systems of endpoints: each message has the fate that ledger.ts demands, and no credit is lost. */
import type { SimulatedHost } from '../../nic/simulated/index.ts'
import { Broken, describe, Ledger } from './ledger.ts'
import { CREDITS, Process } from './process.ts'
import { World } from './world.ts'

export class EndpointWorld extends World<Process> {
  readonly #ledger = new Ledger()

  get finished(): number {
    return this.#ledger.finished
  }

  get returned(): number {
    return this.#ledger.entries.filter(({ returns }) => returns > 0).length
  }

  protected open(host: SimulatedHost): Promise<Process> {
    return Process.open(this.network, this.kernels, host, this.#ledger, this.random)
  }

  /** A process that is gone, or cannot be reached in time, is not mapped. */
  protected connect(from: Process, to: Process): void {
    this.watch(
      from.endpoint.map(to.number, to.endpoint.name).then(
        () => void (to.isAlive && from.mapped.set(to.number, to)),
        (error: Error & { code?: string }) => {
          if (!`${error.code}`.startsWith('ERR_')) throw error
        },
      ),
    )
  }

  protected forget(process: Process): void {
    process.isOver = true
    this.#ledger.gone.add(process.number)
    for (const one of this.players) one.mapped.delete(process.number)
  }

  protected check(): void {
    for (const { endpoint } of this.players) {
      for (const { creditsLeft, outstanding } of endpoint.stats().peers) {
        if (creditsLeft < 0 || creditsLeft > CREDITS || outstanding !== CREDITS - creditsLeft)
          throw new Broken(`${creditsLeft} credits, and ${outstanding} requests under way`)
      }
    }
  }

  protected findUnfinished(): string | undefined {
    const left = this.#ledger.unfinished()
    const [first] = left
    return first === undefined ? this.#leaks() : `${describe(first)} is stuck, and ${left.length - 1} more`
  }

  /** What a connection of two living processes still holds. */
  #leaks(): string | undefined {
    const names = new Set(this.players.map(({ endpoint }) => endpoint.name))
    for (const { endpoint, number } of this.players) {
      for (const peer of endpoint.stats().peers) {
        if (names.has(peer.name) && peer.state === 'open' && peer.creditsLeft !== CREDITS)
          return `process ${number} has lost ${CREDITS - peer.creditsLeft} credits`
      }
    }
    return undefined
  }
}
