/**
 * A whole system in one thread and in virtual time: processes with the product's code, on simulated hosts. All that happens
 * follows from the seed. What the processes do, and which rules hold, is the kind of system: endpoint-world.ts,
 * socket-world.ts, rpc-world.ts; mixed-world.ts has processes of several kinds.
 */
import { drainTicks } from '../../fastsockets/host/node-internals.ts'
import { FaultRandom } from '../../nic/fault/fault-random.ts'
import {
  type FaultCounters,
  HARDWARE,
  type Hardware,
  type SimulatedHost,
  SimulatedKernels,
  SimulatedNetwork,
} from '../../nic/simulated/index.ts'
import { Broken } from './ledger.ts'

/** Processes of one simulation, restarted ones included. */
export const PROCESSES_MAX = 10
/** Small queues are quickly made, and full at times. */
export const QUEUE_SIZE = 128 * 1024
/** Time within which everything must have come to rest once all faults are healed. */
const REST_US_MAX = 120_000_000
/** Silence after which a host that is cut off counts as dead: the default of endpoints. */
const PEER_TIMEOUT_MS = 30_000
/** Actions of one process in one step, at most. */
const BURST_MAX = 48
/** The rules are checked at each of so many steps. */
const CHECKED_STEPS = 8
const PAUSES_US = [0, 0, 10, 100, 1000, 10_000]

/** A kind of fault that `without` can switch off. */
export const FAULT_KINDS = ['faults', 'partition', 'stall', 'pause', 'end'] as const
export type FaultKind = (typeof FAULT_KINDS)[number]

const FRAME_FAULTS = ['frames', 'lost', 'duplicated', 'corrupted', 'reordered', 'overruns']

export interface SimulationOptions {
  readonly seed: number
  readonly steps: number
  /** By default one that the seed chooses. */
  readonly hardware?: string
  /** Faults that do not happen; all else stays as it is. */
  readonly without?: readonly FaultKind[]
}

/** Processes to begin with, at least and at most, and those of the whole simulation. */
export interface ProcessCounts {
  readonly first: readonly [min: number, max: number]
  readonly most: number
}

/** What the systems of one mixed system share. */
export interface Shared {
  readonly random: FaultRandom
  readonly network: SimulatedNetwork
  readonly kernels: SimulatedKernels
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
  readonly faults: Readonly<FaultCounters> & Readonly<Record<string, number>>
  /** Steps that were made: fewer than asked for if a rule was broken before. */
  readonly steps: number
  /** The rule that was broken, and when. */
  readonly failure: string | undefined
}

/** Faults of frames that no program of such a system sees: a kernel's TCP hides them. */
export function isMasked(kind: string, fault: string): boolean {
  return ['names', 'bootstrap'].includes(kind) && FRAME_FAULTS.includes(fault)
}

/** One process of a system. */
export interface Player {
  readonly number: number
  readonly host: SimulatedHost
  readonly isAlive: boolean
  /** It waits for promises that the timeline does not know of. */
  readonly isWaiting: boolean
  /** What went wrong in a promise. */
  readonly fault: unknown
  /** One random action of the program. */
  act(players: readonly Player[]): void
  /** The program ends in an orderly way. */
  close(): Promise<unknown>
}

export abstract class World<P extends Player = Player> {
  step = 0
  /** Steps forward in time between two actions, in microseconds. */
  protected readonly pausesUs: readonly number[] = PAUSES_US
  /** A partition or pause ends by then: a longer silence would end channels of living processes. */
  protected readonly outageUsMax: number = (PEER_TIMEOUT_MS * 1000) / 3
  readonly network: SimulatedNetwork
  readonly kernels: SimulatedKernels
  protected readonly random: FaultRandom
  protected readonly counts: ProcessCounts = { first: [2, 4], most: PROCESSES_MAX }
  players: P[] = []
  readonly #steps: number
  readonly #without: ReadonlySet<FaultKind>
  /** In this system machines lose their links, and not their NICs. */
  readonly #losesLinks: boolean
  #count = 0
  /** A rejection of the background. */
  fault: unknown

  /** `shared`: of a part of a mixed system. */
  constructor({ seed, steps, hardware, without = [] }: SimulationOptions, shared = shareOf(seed, hardware)) {
    this.random = shared.random
    this.network = shared.network
    this.kernels = shared.kernels
    this.#steps = steps
    this.#without = new Set(without)
    this.#losesLinks = seed % 2 === 0
  }

  /** Messages that have found their end, and of those the ones that came back. */
  abstract readonly finished: number
  abstract readonly returned: number
  /** Faults that only this kind of system has, and how often each has struck. */
  get ownFaults(): Readonly<Record<string, number>> {
    return {}
  }

  /** Processes that it deals with. */
  protected peersOf(_player: P): readonly P[] {
    return this.players
  }
  /** The host of a new process: a machine, or another CPU of one. */
  protected addHost(): SimulatedHost {
    return this.network.addHost()
  }
  /** A process begins on a new host. */
  abstract open(host: SimulatedHost): Promise<P>
  /** Connects two processes, in the background. */
  abstract connect(from: P, to: P): void
  /** The process is gone, or about to go. */
  abstract forget(player: P): void
  /** Throws a `Broken` if a rule does not hold now. */
  abstract check(): void
  /** What is not finished, or still held, though no fault is left; undefined if nothing. */
  abstract findUnfinished(): string | undefined
  /** The process has died, or ends in order. */
  handleEnd(_player: P): void {}
  /** All faults have ended: programs stop what would keep the system from its rest. */
  settleDown(): void {}
  /** Releases what the system has outside of virtual time. */
  dispose(): void {}

  run(): void {
    const count = this.random.within(...this.counts.first)
    for (let i = 0; i < count; i++) this.#open()
    this.#settle()
    for (this.step = 1; this.step <= this.#steps; this.step++) {
      this.pass(this.pausesUs[this.random.within(0, this.pausesUs.length - 1)] as number)
      this.#act()
      if (this.step % CHECKED_STEPS === 0) this.check()
    }
    this.#rest()
  }

  protected watch(promise: Promise<unknown>): void {
    promise.catch(error => {
      this.fault ??= error
    })
  }

  /** Lets virtual time pass. Promises run between events, in their order. */
  protected pass(us: number): void {
    const { timeline } = this.network
    const untilUs = timeline.nowUs + us
    while (timeline.nextUs <= untilUs) {
      timeline.step()
      if (timeline.hasSettled || this.#isAnyWaiting()) this.#settle()
    }
    timeline.nowUs = Math.max(timeline.nowUs, untilUs)
    this.#settle()
  }

  #isAnyWaiting(): boolean {
    for (const player of this.players) if (player.isWaiting) return true
    return false
  }

  #act(): void {
    const { network, random } = this
    const player = this.#pick()
    const dice = random.within(0, 999)
    if (dice < 900) {
      for (let left = random.within(1, BURST_MAX); left > 0; left--) player.act(this.peersOf(player))
      return
    }
    if (dice < 930) return this.#setFaults()
    if (dice < 945) {
      const [a, b] = [player.host.number, this.#pick(this.peersOf(player)).host.number]
      if (this.#without.has('partition')) return
      network.partition(a, b)
      return this.#endInTime(() => network.heal(a, b))
    }
    if (dice < 965) return network.heal(player.host.number, this.#pick(this.peersOf(player)).host.number)
    if (dice < 975) {
      const us = random.within(1, 20_000)
      if (this.#without.has('stall')) return
      network.counters.stalls++
      player.host.stalledUntilUs = network.timeline.nowUs + us
    } else if (dice < 985) {
      if (this.#without.has('pause')) return
      network.counters.pauses++
      player.host.pause()
      this.#endInTime(() => player.host.resume())
    } else if (dice < 995) player.host.resume()
    else if (!this.#without.has('end')) this.#end(player)
  }

  #endInTime(end: () => void): void {
    const { timeline } = this.network
    timeline.schedule(timeline.nowUs + this.outageUsMax, end)
  }

  #setFaults(): void {
    const { random } = this
    const rate = (): number => (random.chance(0.5) ? 0 : random.within(1, 100) / 1000)
    const chosen = { loss: rate(), duplication: rate(), corruption: rate(), reordering: rate() }
    if (!this.#without.has('faults')) Object.assign(this.network.faults, chosen)
  }

  /** The process dies, ends in order, or is cut off by the death of its NIC or link; another takes its place. */
  #end(player: P): void {
    if (this.#count >= this.counts.most || this.players.length === 1) return
    const { counters } = this.network
    const dice = this.random.within(0, 2)
    if (dice === 0 && player.host.state === 'running') {
      counters.ends++
      this.#replace(player, () => this.watch(player.close()))
    } else if (dice === 1 && this.#losesLinks && this.#killLink(player.host)) {
      return
    } else if (dice === 1) {
      counters.nicDeaths++
      player.host.isNicDead = true
      this.#replace(player, () => this.kernels.expectSilence(player.host, PEER_TIMEOUT_MS))
    } else {
      counters.kills++
      this.#replace(player, () => {
        player.host.kill()
        this.kernels.closeAll(player.host)
      })
    }
  }

  /** Cuts off all processes of a machine; false, and nothing happens, if none would be left, or too many would have to take their places. */
  #killLink({ nic }: SimulatedHost): boolean {
    const gone = this.players.filter(({ host }) => host.nic === nic)
    if (gone.length >= this.players.length || this.#count + gone.length > this.counts.most) return false
    nic.isLinkDead = true
    this.network.counters.linkDeaths++
    // Those that are about to end, too.
    for (const host of this.network.hosts)
      if (host.nic === nic) this.kernels.expectSilence(host, PEER_TIMEOUT_MS)
    for (const player of gone) this.#replace(player)
    return true
  }

  #replace(player: P, end?: () => void): void {
    this.players = this.players.filter(one => one !== player)
    this.forget(player)
    end?.()
    this.handleEnd(player)
    this.#open()
  }

  #open(): void {
    this.#count++
    this.watch(
      this.open(this.addHost()).then(fresh => {
        for (const one of this.players) {
          this.connect(fresh, one)
          this.connect(one, fresh)
        }
        this.players.push(fresh)
      }),
    )
  }

  #pick(from: readonly P[] = this.players): P {
    return from[this.random.within(0, from.length - 1)] as P
  }

  /** Promises go on, as Node lets them between two callbacks. */
  #settle(): void {
    this.network.timeline.hasSettled = false
    drainTicks()
    for (const { fault } of this.players) this.fault ??= fault
    if (this.fault !== undefined) throw this.fault
  }

  /** All faults end; everything must come to rest, and nothing be left. */
  #rest(): void {
    const { network } = this
    network.healAll()
    this.settleDown()
    const untilUs = network.timeline.nowUs + REST_US_MAX
    for (;;) {
      this.pass(100_000)
      this.check()
      const left = this.findUnfinished()
      if (left === undefined) return
      if (network.timeline.nowUs >= untilUs) throw new Broken(left)
    }
  }
}

/** Over hardware that the seed chooses by default. Half of the seeds meet a network that loses frames. */
function shareOf(seed: number, hardware: string | undefined): Shared {
  const random = new FaultRandom(seed)
  const names = [...HARDWARE.keys()]
  const name = hardware ?? (names[random.within(0, names.length - 1)] as string)
  const mayLose = random.chance(0.5)
  const options = { hardware: HARDWARE.get(name) as Hardware, mayLose }
  const network = new SimulatedNetwork({ seed: random.word(), ...options })
  return { random, network, kernels: new SimulatedKernels(network) }
}
