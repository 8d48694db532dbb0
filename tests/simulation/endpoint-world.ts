/** Systems of endpoints: each message has the fate that ledger.ts demands, and no credit is lost. */
import type { Endpoint } from '../../am/index.ts'
import type { ReliabilityStats } from '../../am/reliability/reliability-stats.ts'
import type { SimulatedHost } from '../../nic/simulated/index.ts'
import { Broken, describe, Ledger } from './ledger.ts'
import { CREDITS, Process } from './process.ts'
import { World } from './world.ts'

export class EndpointWorld extends World<Process> {
  readonly #ledger = new Ledger()
  #opened = 0

  get finished(): number {
    return this.#ledger.finished
  }

  get returned(): number {
    return this.#ledger.entries.filter(({ returns }) => returns > 0).length
  }

  open(host: SimulatedHost): Promise<Process> {
    return Process.open(this.network, this.kernels, host, this.#opened++, this.#ledger, this.random)
  }

  /** A process that is gone, or cannot be reached in time, is not mapped. */
  connect(from: Process, to: Process): void {
    this.watch(
      from.endpoint.map(to.number, to.endpoint.name).then(
        () => void (to.isAlive && from.mapped.set(to.number, to)),
        (error: Error & { code?: string }) => {
          if (!`${error.code}`.startsWith('ERR_')) throw error
        },
      ),
    )
  }

  forget(process: Process): void {
    process.isOver = true
    this.#ledger.gone.add(process.number)
    for (const one of this.players) one.mapped.delete(process.number)
  }

  check(): void {
    for (const { endpoint } of this.players) {
      for (const { creditsLeft, outstanding } of endpoint.stats().peers) {
        if (creditsLeft < 0 || creditsLeft > CREDITS || outstanding !== CREDITS - creditsLeft)
          throw new Broken(`${creditsLeft} credits, and ${outstanding} requests under way`)
      }
    }
  }

  findUnfinished(): string | undefined {
    const left = this.#ledger.unfinished()
    const [first] = left
    return first === undefined ? this.#leaks() : `${describe(first)} is stuck, and ${left.length - 1} more`
  }

  /** What a connection of two living processes still holds. */
  #leaks(): string | undefined {
    const byName = new Map(this.players.map(({ endpoint }) => [endpoint.name, endpoint]))
    for (const { endpoint, number, host } of this.players) {
      const { peers } = endpoint.stats()
      const openCount = peers.filter(({ state }) => state === 'open').length
      if (host.interfaceCount !== openCount)
        return `process ${number} keeps the memory of ${host.interfaceCount} channels to ${openCount} peers`
      for (const peer of peers) {
        const other = byName.get(peer.name)
        const retained = other === undefined ? 0 : retainedFrames(endpoint, other)
        if (retained !== 0)
          return `process ${number} has sent ${retained} frames that its peer does not hand over`
        if (other !== undefined && peer.state === 'open' && peer.creditsLeft !== CREDITS)
          return `process ${number} has lost ${CREDITS - peer.creditsLeft} credits`
      }
    }
    return undefined
  }
}

/** Frames that `from` has sent and `to` has not handed over; 0 where each network frame arrives. */
function retainedFrames(from: Endpoint, to: Endpoint): number {
  const sent = countsTowards(from, to).reduce((sum, one) => sum + one.sent, 0)
  const delivered = countsTowards(to, from).reduce((sum, one) => sum + one.delivered, 0)
  return sent - delivered
}

function countsTowards(from: Endpoint, { name }: Endpoint): ReliabilityStats[] {
  const { peers } = from.stats()
  return peers.flatMap(peer => (peer.name === name && peer.reliability ? [peer.reliability] : []))
}
