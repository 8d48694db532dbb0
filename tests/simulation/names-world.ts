/**
 * Systems of one name daemon and its clients. Nothing is ever seen that the daemon's disk has not had; once faults have
 * ended, each name is where its program thinks it is, and names of programs that have ended are gone.
 */
import type { SimulatedHost } from '../../nic/simulated/index.ts'
import { NamesClient } from './names-client.ts'
import { NamesDaemon } from './names-daemon.ts'
import { NamesDisk } from './names-disk.ts'
import { World } from './world.ts'

/** A new daemon finds the disk of the one before, mostly. */
const WIPE_RATE = 0.2

export class NamesWorld extends World<NamesClient | NamesDaemon> {
  /** Leases last seconds. */
  protected override readonly pausesUs = [0, 0, 100, 10_000, 100_000, 1_000_000, 4_000_000]
  /** There are no channels. */
  protected override readonly outageUsMax = Number.POSITIVE_INFINITY
  readonly #disk = new NamesDisk(this.network)
  readonly #clients: NamesClient[] = []
  #daemonHost: SimulatedHost | undefined

  get finished(): number {
    return this.#clients.reduce((sum, { answered }) => sum + answered, 0)
  }

  get returned(): number {
    return this.#clients.reduce((sum, { unanswered }) => sum + unanswered, 0)
  }

  override get ownFaults(): Readonly<Record<string, number>> {
    const { failures: refusedWrites, beginnings } = this.#disk
    return { refusedWrites, beginnings }
  }

  /** The first process is the daemon, and each one in place of a daemon. */
  async open(host: SimulatedHost): Promise<NamesClient | NamesDaemon> {
    if (this.#daemonHost === undefined) {
      this.#daemonHost = host
      return NamesDaemon.open(this.network, this.kernels, host, this.#disk, this.random)
    }
    const client = new NamesClient(this.kernels, host, this.#disk, this.random)
    this.#clients.push(client)
    return client
  }

  /** The daemon's place is known. */
  connect(): void {}

  forget(process: NamesClient | NamesDaemon): void {
    if (process instanceof NamesClient) process.isOver = true
    else this.#daemonHost = undefined
  }

  /** The machine of a daemon that lost its NIC or its link is switched off, before another takes its place. */
  override handleEnd(process: NamesClient | NamesDaemon): void {
    if (process instanceof NamesClient || !process.host.isCutOff) return
    process.host.kill()
    this.kernels.closeAll(process.host)
    if (this.random.chance(WIPE_RATE)) this.#disk.wipe()
  }

  check(): void {}

  override settleDown(): void {
    this.#disk.isFaulty = false
  }

  findUnfinished(): string | undefined {
    const daemon = this.players.find(player => player instanceof NamesDaemon)
    if (daemon === undefined) return 'there is no daemon'
    const { store } = daemon
    if (store.state !== 'ready') return 'the store takes no changes'
    const { image } = store
    const living = this.players.filter(player => player instanceof NamesClient)
    const holds = (client: NamesClient, name: string): boolean =>
      client.registrations.get(name)?.state === 'registered'
    for (const client of living) {
      const isHeldElsewhere = (name: string): boolean =>
        living.some(other => other !== client && holds(other, name))
      const why = client.findUnfinished(store, isHeldElsewhere)
      if (why !== undefined) return why
    }
    const held = living.reduce(
      (sum, client) => sum + [...client.registrations.keys()].filter(name => holds(client, name)).length,
      0,
    )
    if (image.nameCount !== held) return `the daemon keeps ${image.nameCount} names, and ${held} are held`
    return image.leaseCount <= living.length
      ? undefined
      : `the daemon keeps ${image.leaseCount} leases of ${living.length} processes`
  }
}
