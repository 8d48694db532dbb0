/**
 * One simulated process with a client of the name service. Its program registers names, releases them, looks others up and
 * follows all of them; what it learns is held against what the daemon's disk has had.
 */
import type { Subscription } from 'rxjs'
import type { NameError } from '../../nameservice/client/errors.ts'
import { NameClient } from '../../nameservice/client/name-client.ts'
import type { Registration } from '../../nameservice/client/registration.ts'
import type { NameEvent } from '../../nameservice/index.ts'
import type { Change, Entry } from '../../nameservice/record.ts'
import { parseCursor } from '../../nameservice/store/change-log.ts'
import type { LocalStore } from '../../nameservice/store/local-store.ts'
import type { FaultRandom } from '../../nic/fault/fault-random.ts'
import type { SimulatedHost, SimulatedKernels } from '../../nic/simulated/index.ts'
import { Broken } from './ledger.ts'
import { SOCKET_PATH, TCP_PLACE } from './names-daemon.ts'
import type { NamesDisk } from './names-disk.ts'
import { ProgramSockets } from './program-sockets.ts'
import type { Player } from './world.ts'

const NAMES = ['a', 'b', 'c', 'd/1', 'd/2', 'd/3']
const TTL_MS = 5000
/** Questions of one program under way. */
const QUESTIONS_MAX = 4
const REGISTRATIONS_MAX = 3
const LIST_RETRY_MS = 100
/** What a program may meet that asks while the daemon is away or stops. */
const EXPECTED: ReadonlySet<string> = new Set(['ERR_NAMES_UNAVAILABLE', 'ERR_NAMES_REFUSED'])

export class NamesClient implements Player {
  readonly number: number
  readonly host: SimulatedHost
  readonly isWaiting = true
  fault: unknown
  isOver = false
  /** Questions that the daemon has answered, and that came to nothing. */
  answered = 0
  unanswered = 0
  readonly registrations = new Map<string, Registration>()
  readonly #client: NameClient
  readonly #disk: NamesDisk
  readonly #random: FaultRandom
  #made = 0
  #underWay = 0
  #follower: Follower | undefined
  /** Of each name: the latest entry that was answered as current. */
  readonly #latest = new Map<string, number>()

  constructor(kernels: SimulatedKernels, host: SimulatedHost, disk: NamesDisk, random: FaultRandom) {
    this.number = host.number
    this.host = host
    this.#disk = disk
    this.#random = random
    const { open } = new ProgramSockets(kernels, host)
    const address = random.chance(0.5) ? `unix:${SOCKET_PATH}` : `http://${TCP_PLACE}`
    const time = { clock: host.clock, random: () => random.within(0, 0xffff) / 0x10000 }
    this.#client = new NameClient({ address, ttlMs: TTL_MS, openSocket: open }, time)
  }

  get isAlive(): boolean {
    return this.host.state !== 'dead' && !this.isOver
  }

  act(): void {
    const random = this.#random
    if (this.host.state !== 'running' || this.#underWay >= QUESTIONS_MAX) return
    const dice = random.within(0, 99)
    const name = NAMES[random.within(0, NAMES.length - 1)] as string
    if (dice < 25) this.#register(name)
    else if (dice < 35) this.#release(name)
    else if (dice < 85) this.#ask(this.#lookUp(name))
    else if (dice < 95) this.#ask(this.#list())
    else if (this.#follower === undefined)
      this.#follower = new Follower(this.#client, this.#disk, this.host, error => this.#fail(error))
    else if (dice > 97) {
      this.#follower.close()
      this.#follower = undefined
    }
  }

  close(): Promise<void> {
    return this.#client.close()
  }

  /** What is not as it must be, once nothing moves any more; undefined if all is. */
  findUnfinished({ image, log }: LocalStore, isHeldElsewhere: (name: string) => boolean): string | undefined {
    if (this.#underWay > 0) return `${this.#underWay} questions of process ${this.number} are under way`
    for (const [name, { state, entry, options }] of this.registrations) {
      const there = image.entry(name)
      if (state === 'registered' && (there === undefined || there.lease !== entry?.lease))
        return `${name} of process ${this.number} is not registered, and its program thinks so`
      const mayWait = options.takeover === true && isHeldElsewhere(name)
      if (state === 'pending' && !mayWait) return `${name} of process ${this.number} is not registered`
    }
    const { entry: found } = { entry: this.#follower?.findDifference(image, log.revision) }
    return found === undefined ? undefined : `process ${this.number} ${found}`
  }

  #register(name: string): void {
    const held = this.registrations.get(name)
    const isOver = held?.state === 'refused' || held?.state === 'lost'
    if (isOver) this.#release(name)
    if ((held !== undefined && !isOver) || this.registrations.size >= REGISTRATIONS_MAX) return
    const random = this.#random
    const endpoint = `${this.number}-${this.#made++}`
    const options = {
      ...(random.chance(0.5) && { ownerKey: 'key' }),
      ...(random.chance(0.3) && { takeover: true }),
    }
    this.registrations.set(name, this.#client.register({ name, endpoint }, options))
  }

  #release(name: string): void {
    const registration = this.registrations.get(name)
    if (registration === undefined) return
    this.registrations.delete(name)
    this.#ask(registration.close())
  }

  async #lookUp(name: string): Promise<void> {
    const { status, entry, stale } = await this.#client.lookup(name)
    if (status === 'unavailable') throw Object.assign(new Error(), { code: 'ERR_NAMES_UNAVAILABLE' })
    if (entry === undefined) return
    const order = this.#orderOf(entry)
    if (stale) return
    const latest = this.#latest.get(name) ?? 0
    if (order < latest) throw new Broken(`process ${this.number} finds ${name} as it was before`)
    this.#latest.set(name, order)
  }

  async #list(): Promise<void> {
    const { entries } = await this.#client.list('d/')
    for (const entry of entries) this.#orderOf(entry)
    const names = entries.map(({ name }) => name)
    if (names.some((name, i) => !name.startsWith('d/') || name === names[i - 1]))
      throw new Broken(`a list has the names ${names}`)
  }

  /** Throws if the daemon never had such an entry. */
  #orderOf({ name, lease, revision }: Entry): number {
    const order = this.#disk.orderOf(name, lease, revision)
    if (order === undefined)
      throw new Broken(`process ${this.number} finds ${name} at revision ${revision}, which never was`)
    return order
  }

  #ask(question: Promise<unknown>): void {
    this.#underWay++
    question
      .then(
        () => {
          this.answered++
        },
        (error: NameError) => {
          if (error instanceof Broken || !EXPECTED.has(error.code)) throw error
          this.unanswered++
        },
      )
      .catch(error => this.#fail(error))
      .finally(() => {
        this.#underWay--
      })
  }

  #fail(error: unknown): void {
    if (this.isAlive) this.fault ??= error
  }
}

/** Keeps a copy of all names: lists them, and follows the changes from there. */
class Follower {
  readonly #client: NameClient
  readonly #disk: NamesDisk
  readonly #host: SimulatedHost
  readonly #fail: (error: unknown) => void
  #subscription: Subscription | undefined
  /** Undefined before the names are listed. */
  #names: Map<string, Entry> | undefined
  #revision = 0
  /** Changes that came before the list. */
  #early: Change[] = []
  #isClosed = false
  #isListing = false

  constructor(client: NameClient, disk: NamesDisk, host: SimulatedHost, fail: (error: unknown) => void) {
    this.#client = client
    this.#disk = disk
    this.#host = host
    this.#fail = fail
    this.#list(cursor => {
      this.#subscription = client.watch$('', { after: cursor }).subscribe({
        next: event => this.#guard(() => this.#handle(event)),
        error: (error: NameError) => {
          if (error.code !== 'ERR_NAMES_CLOSED') this.#fail(error)
        },
      })
    })
  }

  close(): void {
    this.#isClosed = true
    this.#subscription?.unsubscribe()
  }

  /** How the copy differs from what the daemon has; undefined if it does not. */
  findDifference(image: LocalStore['image'], revision: number): string | undefined {
    const names = this.#names
    if (names === undefined) return 'has not listed the names'
    if (this.#revision !== revision) return `follows up to change ${this.#revision} of ${revision}`
    for (const [name, entry] of names)
      if (image.entry(name)?.revision !== entry.revision) return `keeps ${name}, which is another`
    return names.size === image.nameCount ? undefined : `keeps ${names.size} names of ${image.nameCount}`
  }

  #list(then: (cursor: string) => void): void {
    if (this.#isClosed || this.#isListing) return
    this.#isListing = true
    this.#client.list().then(
      ({ entries, cursor }) =>
        this.#guard(() => {
          this.#isListing = false
          if (this.#isClosed) return
          this.#names = new Map(entries.map(entry => [entry.name, entry]))
          this.#revision = parseCursor(cursor)?.revision ?? 0
          const early = this.#early.splice(0).filter(({ revision }) => revision > this.#revision)
          for (const change of early) this.#apply(change)
          then(cursor)
        }),
      () => {
        this.#isListing = false
        this.#host.clock.setTimeout(() => this.#list(then), LIST_RETRY_MS)
      },
    )
  }

  #handle(event: NameEvent): void {
    if (event.type === 'up') return
    if (event.type === 'reset') {
      this.#names = undefined
      this.#early = []
      return this.#list(() => {})
    }
    if (this.#names === undefined) this.#early.push(event)
    else if (event.revision > this.#revision || this.#revision === 0) this.#apply(event)
    else throw new Broken(`change ${event.revision} arrives behind change ${this.#revision}`)
  }

  #apply(change: Change): void {
    const { name, revision } = change
    if (revision !== this.#revision + 1)
      throw new Broken(`change ${revision} follows change ${this.#revision}`)
    this.#revision = revision
    if (change.type === 'delete') return void this.#names?.delete(name)
    const { type: _, ...entry } = change
    if (this.#disk.orderOf(name, entry.lease, revision) === undefined)
      throw new Broken(`change ${revision} of ${name} never was`)
    this.#names?.set(name, entry)
  }

  #guard(run: () => void): void {
    try {
      run()
    } catch (error) {
      this.#fail(error)
    }
  }
}
