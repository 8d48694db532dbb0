/**
 * A whole system in one thread and in virtual time: processes with the product's endpoints, on simulated hosts. All that
 * happens follows from the seed. After each step the rules of ledger.ts and those of `check` must hold.
 */
import { drainTicks } from '../../fastsockets/host/node-internals.ts'
import { FaultRandom } from '../../nic/fault/fault-random.ts'
import {
  type FaultCounters,
  HARDWARE,
  type Hardware,
  SimulatedKernels,
  SimulatedNetwork,
} from '../../nic/simulated/index.ts'
import { Broken, describe, Ledger } from './ledger.ts'
import { CREDITS, PROCESSES_MAX, Process } from './process.ts'

/** Time within which everything must have come to rest once all faults are healed. */
const REST_US_MAX = 120_000_000
/** Silence after which a host with a dead NIC counts as dead: the default of endpoints. */
const PEER_TIMEOUT_MS = 30_000
/** Most messages of one step. */
const BURST_MAX = 48
/** The rules of credits are checked at each of so many steps. */
const CHECKED_STEPS = 8
/** Steps forward in time between two actions, in microseconds. */
const PAUSES_US = [0, 0, 10, 100, 1000, 10_000]

export interface SimulationOptions {
  readonly seed: number
  readonly steps: number
  /** By default one that the seed chooses. */
  readonly hardware?: string
}

export interface Outcome {
  readonly seed: number
  readonly hardware: string
  /** A fingerprint of every frame with its time. */
  readonly trace: number
  readonly messages: number
  readonly returned: number
  readonly frames: number
  readonly events: number
  readonly virtualMs: number
  readonly faults: Readonly<FaultCounters>
  /** The rule that was broken, and when. */
  readonly failure: string | undefined
}

/**
 * Resolves after one system has run from its beginning to its end, within one callback of Node's: no other work comes in
 * between.
 */
export function simulate(options: SimulationOptions): Promise<Outcome> {
  return new Promise(resolve => setImmediate(() => resolve(run(options))))
}

function run(options: SimulationOptions): Outcome {
  const world = new World(options)
  let failure: string | undefined
  try {
    world.run()
  } catch (error) {
    failure = `${(error as Error).message} (step ${world.step}, ${world.network.timeline.nowUs} us)`
    if (!(error instanceof Broken)) failure += `\n${(error as Error).stack}`
  }
  const { network, ledger } = world
  const { counters, timeline } = network
  return {
    seed: options.seed,
    hardware: network.hardware.name,
    trace: network.trace,
    messages: ledger.finished,
    returned: ledger.entries.filter(({ returns }) => returns > 0).length,
    frames: network.frameCount,
    events: timeline.count,
    virtualMs: timeline.nowUs / 1000,
    faults: { ...counters },
    failure,
  }
}

class World {
  step = 0
  readonly network: SimulatedNetwork
  readonly ledger = new Ledger()
  readonly #kernels: SimulatedKernels
  readonly #random: FaultRandom
  readonly #steps: number
  #processes: Process[] = []
  #count = 0
  /** A rejection of the background. */
  #fault: unknown

  constructor({ seed, steps, hardware }: SimulationOptions) {
    this.#random = new FaultRandom(seed)
    const names = [...HARDWARE.keys()]
    const name = hardware ?? (names[this.#random.within(0, names.length - 1)] as string)
    const chosen = HARDWARE.get(name) as Hardware
    // Half of the seeds meet a network that loses frames.
    const mayLose = this.#random.chance(0.5)
    this.network = new SimulatedNetwork({ seed: this.#random.word(), hardware: chosen, mayLose })
    this.#kernels = new SimulatedKernels(this.network)
    this.#steps = steps
  }

  run(): void {
    const count = this.#random.within(2, 4)
    for (let i = 0; i < count; i++) this.#watch(this.#open())
    this.#settle()
    for (const process of this.#processes) this.#mapAll(process)
    for (this.step = 1; this.step <= this.#steps; this.step++) {
      this.#pass(PAUSES_US[this.#random.within(0, PAUSES_US.length - 1)] as number)
      this.#act()
      if (this.step % CHECKED_STEPS === 0) this.#check()
    }
    this.#rest()
  }

  #act(): void {
    const { network } = this
    const random = this.#random
    const process = this.#pick()
    const dice = random.within(0, 999)
    if (dice < 900) {
      for (let left = random.within(1, BURST_MAX); left > 0; left--) process.sendTo(this.#pick().number)
      return
    }
    if (dice < 930) return this.#setFaults()
    if (dice < 945) return network.partition(process.number, this.#pick().number)
    if (dice < 965) return network.heal(process.number, this.#pick().number)
    if (dice < 975) {
      network.counters.stalls++
      process.host.stalledUntilUs = network.timeline.nowUs + random.within(1, 20_000)
    } else if (dice < 985) {
      network.counters.pauses++
      process.host.pause()
    } else if (dice < 995) process.host.resume()
    else this.#end(process)
  }

  #setFaults(): void {
    const random = this.#random
    const rate = (): number => (random.chance(0.5) ? 0 : random.within(1, 100) / 1000)
    const { faults } = this.network
    faults.loss = rate()
    faults.duplication = rate()
    faults.corruption = rate()
    faults.reordering = rate()
  }

  /** The process dies, closes its endpoint, or loses its NIC; another takes its place. */
  #end(process: Process): void {
    if (this.#count >= PROCESSES_MAX) return
    const { network, ledger } = this
    ledger.gone.add(process.number)
    this.#processes = this.#processes.filter(one => one !== process)
    for (const one of this.#processes) one.mapped.delete(process.number)
    const dice = this.#random.within(0, 2)
    if (dice === 0 && process.host.state === 'running') {
      process.isClosed = true
      this.#watch(process.endpoint.close())
    } else if (dice === 1) {
      process.isClosed = true
      process.host.isNicDead = true
      this.#kernels.expectSilence(process.host, PEER_TIMEOUT_MS)
    } else {
      process.host.kill()
      this.#kernels.closeAll(process.host)
    }
    network.counters.kills++
    this.#watch(
      this.#open().then(fresh => {
        this.#mapAll(fresh)
        for (const one of this.#processes) if (one !== fresh) this.#map(one, fresh)
      }),
    )
  }

  async #open(): Promise<Process> {
    this.#count++
    const process = await Process.open(this.network, this.#kernels, this.ledger, this.#random)
    this.#processes.push(process)
    return process
  }

  #mapAll(process: Process): void {
    for (const other of this.#processes) if (other !== process) this.#map(process, other)
  }

  /** In the background: a process that is gone, or cannot be reached in time, is not mapped. */
  #map(process: Process, other: Process): void {
    this.#watch(
      process.endpoint.map(other.number, other.endpoint.name).then(
        () => void (other.isAlive && process.mapped.set(other.number, other)),
        (error: Error & { code?: string }) => {
          if (!`${error.code}`.startsWith('ERR_')) throw error
        },
      ),
    )
  }

  #watch(promise: Promise<unknown>): void {
    promise.catch(error => {
      this.#fault ??= error
    })
  }

  #pick(): Process {
    return this.#processes[this.#random.within(0, this.#processes.length - 1)] as Process
  }

  /** Lets virtual time pass. Promises run between events, in their order. */
  #pass(us: number): void {
    const { timeline } = this.network
    const untilUs = timeline.nowUs + us
    while (timeline.nextUs <= untilUs) {
      timeline.step()
      if (timeline.hasSettled || this.#processes.some(({ calls }) => calls > 0)) this.#settle()
    }
    timeline.nowUs = Math.max(timeline.nowUs, untilUs)
    this.#settle()
  }

  /** Promises go on, as Node lets them between two callbacks. */
  #settle(): void {
    this.network.timeline.hasSettled = false
    drainTicks()
    for (const process of this.#processes) this.#fault ??= process.fault
    if (this.#fault !== undefined) throw this.#fault
  }

  #check(): void {
    for (const { endpoint, isAlive } of this.#processes) {
      if (!isAlive) continue
      for (const { creditsLeft, outstanding } of endpoint.stats().peers) {
        if (creditsLeft < 0 || creditsLeft > CREDITS || outstanding !== CREDITS - creditsLeft)
          throw new Broken(`${creditsLeft} credits, and ${outstanding} requests under way`)
      }
    }
  }

  /** All faults end; everything must come to rest, and nothing be left. */
  #rest(): void {
    const { network, ledger } = this
    network.healAll()
    const untilUs = network.timeline.nowUs + REST_US_MAX
    for (;;) {
      this.#pass(100_000)
      this.#check()
      const left = ledger.unfinished()
      const leaking = this.#leaks()
      if (left.length === 0 && leaking === undefined) return
      if (network.timeline.nowUs < untilUs) continue
      const [first] = left
      throw new Broken(
        first === undefined ? `${leaking}` : `${describe(first)} is stuck, and ${left.length - 1} more`,
      )
    }
  }

  /** What a connection of two living processes still holds. */
  #leaks(): string | undefined {
    const names = new Set(this.#processes.map(({ endpoint }) => endpoint.name))
    for (const { endpoint, number } of this.#processes) {
      for (const peer of endpoint.stats().peers) {
        if (names.has(peer.name) && peer.state === 'open' && peer.creditsLeft !== CREDITS)
          return `process ${number} has lost ${CREDITS - peer.creditsLeft} credits`
      }
    }
    return undefined
  }
}
