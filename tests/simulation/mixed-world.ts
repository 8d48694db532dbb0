/**
 * Systems of all kinds of processes at once, over one network: some share a machine and its NIC. A process deals with those of its
 * kind; all rules of its kind hold.
 */
import type { SimulatedHost } from '../../nic/simulated/index.ts'
import { EndpointWorld } from './endpoint-world.ts'
import { NamesWorld } from './names-world.ts'
import { PeersWorld } from './peers-world.ts'
import { PromotionWorld } from './promotion-world.ts'
import { RawWorld } from './raw-world.ts'
import { RpcWorld } from './rpc-world.ts'
import { SocketWorld } from './socket-world.ts'
import { type Player, type ProcessCounts, type SimulationOptions, World } from './world.ts'

/** Two processes of each kind, and those that take their places. */
const FIRST = 14
const MOST = 22
/** A new process is on the machine of another one so often. */
const BESIDE_RATE = 0.3

/** A kind of system, whatever its processes are. */
interface Part extends Omit<World, 'open' | 'connect' | 'forget' | 'handleEnd' | 'players'> {
  players: Player[]
  open(host: SimulatedHost): Promise<Player>
  connect(from: Player, to: Player): void
  forget(player: Player): void
  handleEnd(player: Player): void
}

export class MixedWorld extends World {
  protected override readonly counts: ProcessCounts = { first: [FIRST, FIRST], most: MOST }
  protected override readonly pausesUs = [0, 0, 10, 100, 1000, 10_000, 100_000]
  readonly #parts: readonly Part[]
  readonly #partOf = new Map<Player, Part>()
  #opened = 0
  /** Where a process has ended, another one begins. */
  #next: Part | undefined

  constructor(options: SimulationOptions) {
    super(options)
    const { random, network, kernels } = this
    const kinds = [EndpointWorld, SocketWorld, RawWorld, PromotionWorld, NamesWorld, PeersWorld, RpcWorld]
    this.#parts = kinds.map(Kind => new Kind(options, { random, network, kernels }) as unknown as Part)
  }

  get finished(): number {
    return this.#parts.reduce((sum, { finished }) => sum + finished, 0)
  }

  get returned(): number {
    return this.#parts.reduce((sum, { returned }) => sum + returned, 0)
  }

  override get ownFaults(): Readonly<Record<string, number>> {
    return Object.assign({}, ...this.#parts.map(({ ownFaults }) => ownFaults))
  }

  protected override addHost(): SimulatedHost {
    const { random, network } = this
    const hosts = network.hosts.filter(({ nic }) => !nic.isLinkDead)
    const isBeside = hosts.length > 0 && random.chance(BESIDE_RATE)
    return network.addHost(isBeside ? hosts[random.within(0, hosts.length - 1)] : undefined)
  }

  protected override peersOf(player: Player): readonly Player[] {
    return this.#of(player).players
  }

  async open(host: SimulatedHost): Promise<Player> {
    const part = this.#next ?? (this.#parts[this.#opened++ % this.#parts.length] as Part)
    const player = await part.open(host)
    this.#partOf.set(player, part)
    part.players = [...part.players, player]
    return player
  }

  connect(from: Player, to: Player): void {
    const part = this.#of(from)
    if (part === this.#of(to)) part.connect(from, to)
  }

  forget(player: Player): void {
    const part = this.#of(player)
    part.players = part.players.filter(one => one !== player)
    part.forget(player)
    this.#next = part
  }

  override handleEnd(player: Player): void {
    this.#of(player).handleEnd(player)
  }

  check(): void {
    for (const part of this.#parts) {
      if (part.fault !== undefined) throw part.fault
      part.check()
    }
  }

  override settleDown(): void {
    for (const part of this.#parts) part.settleDown()
  }

  findUnfinished(): string | undefined {
    for (const part of this.#parts) {
      const why = part.findUnfinished()
      if (why !== undefined) return why
    }
    return undefined
  }

  override dispose(): void {
    for (const part of this.#parts) part.dispose()
  }

  #of(player: Player): Part {
    return this.#partOf.get(player) as Part
  }
}
