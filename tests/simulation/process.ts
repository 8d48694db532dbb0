/** One simulated process: the product's endpoint on a simulated host, and a program that sends and checks messages. */
import { type Endpoint, type Message, NO_CREDIT, NO_RESOURCE, OK, openEndpoint } from '../../am/index.ts'
import { openProcess } from '../../am/simulated-process.ts'
import type { FaultRandom } from '../../nic/fault/fault-random.ts'
import type { SimulatedHost, SimulatedKernels, SimulatedNetwork } from '../../nic/simulated/index.ts'
import { Broken, checkPayload, describe, type Entry, type Kind, type Ledger, payloadOf } from './ledger.ts'
import { type Player, PROCESSES_MAX, QUEUE_SIZE } from './world.ts'

export const CREDITS = 16
/** Places for long messages of one peer: one more than it may have under way. */
const PLACES = CREDITS + 1
/** Longer than one PART: goes one-sidedly, or in parts. */
const LONG_MAX = 70_000
const PLACE_SIZE = 4096
/** Each process has an area in the segments of the others. Behind its places there is one for a message longer than that. */
const AREA_SIZE = PLACES * PLACE_SIZE + LONG_MAX + 2000
/** Bytes that peers get, behind the areas; then an area for what we get of each peer. */
const SOURCE_SIZE = LONG_MAX
const SOURCE_AT = PROCESSES_MAX * AREA_SIZE

const MEDIUM_MAX = 20_000
/** Above what messages and the reliability layer add to a payload. */
const HEADERS_MAX = 200

const SHORT = 1
const MEDIUM = 2
const LONG = 3
const REPLY = 4
const GOTTEN = 5
const CALL = 6

export class Process implements Player {
  readonly number: number
  readonly host: SimulatedHost
  readonly endpoint: Endpoint
  /** Destinations that are mapped, and the process behind each. */
  readonly mapped = new Map<number, Process>()
  /** It has closed its endpoint, died, or lost its NIC. */
  isOver = false
  #calls = 0
  readonly #ledger: Ledger
  readonly #random: FaultRandom
  /** For each destination: the next place, and the last message in the place for large ones. */
  readonly #longs = new Map<number, number>()
  readonly #large = new Map<number, Entry>()

  private constructor(
    number: number,
    host: SimulatedHost,
    endpoint: Endpoint,
    ledger: Ledger,
    random: FaultRandom,
  ) {
    this.number = number
    this.host = host
    this.endpoint = endpoint
    this.#ledger = ledger
    this.#random = random
    const source = endpoint.segment.subarray(SOURCE_AT)
    source.set(payloadOf(number, SOURCE_SIZE))
    endpoint.setHandler(SHORT, message => this.#handle(message, ['short']))
    endpoint.setHandler(MEDIUM, message => this.#handle(message, ['medium']))
    endpoint.setHandler(LONG, message => this.#handle(message, ['long']))
    endpoint.setHandler(CALL, message => this.#handle(message, ['call']))
    endpoint.setHandler(REPLY, message => this.#handleReply(message))
    endpoint.setHandler(GOTTEN, message => this.#handleGotten(message))
    endpoint.setHandler(0, message => this.#handleReturned(message))
  }

  static async open(
    network: SimulatedNetwork,
    kernels: SimulatedKernels,
    host: SimulatedHost,
    number: number,
    ledger: Ledger,
    random: FaultRandom,
  ): Promise<Process> {
    if (number >= PROCESSES_MAX) throw new Error('too many processes')
    const { runtime, driver } = openProcess(network, kernels, host, false, QUEUE_SIZE)
    const options = { drivers: [driver], segment: SOURCE_AT + SOURCE_SIZE + SOURCE_AT, credits: CREDITS }
    return new Process(number, host, await openEndpoint(options, runtime), ledger, random)
  }

  get isAlive(): boolean {
    return this.host.state !== 'dead' && !this.isOver
  }

  get isWaiting(): boolean {
    return this.#calls > 0
  }

  act(players: readonly Player[]): void {
    this.#sendTo((players[this.#random.within(0, players.length - 1)] as Player).number)
  }

  close(): Promise<void> {
    return this.endpoint.close()
  }

  /** Sends one message of a random kind; false if it was refused. */
  #sendTo(destination: number): boolean {
    const to = this.mapped.get(destination)
    if (to === undefined || this.host.state !== 'running' || this.isOver) return false
    const dice = this.#random.within(0, 99)
    if (dice < 40) return this.#send('short', to, destination, 0)
    if (dice < 70)
      return this.#send('medium', to, destination, this.#random.within(0, dice < 45 ? this.#mediumMax : 400))
    if (dice < 82) return this.#send('long', to, destination, this.#length(destination))
    if (dice < 92) return this.#send('get', to, destination, this.#length(destination))
    return this.#send('call', to, destination, this.#random.within(0, 200))
  }

  /** The queue's longest frame is the longest medium message. */
  get #mediumMax(): number {
    return Math.min(MEDIUM_MAX, this.host.hardware.frameMax - HEADERS_MAX, QUEUE_SIZE / 8 - HEADERS_MAX)
  }

  /** Of a long message or a get: seldom a large one, and only one at a time. */
  #length(destination: number): number {
    const large = this.#large.get(destination)
    const isFree = large === undefined || this.#ledger.isFinished(large)
    return isFree && this.#random.chance(0.1)
      ? this.#random.within(60_000, LONG_MAX)
      : this.#random.within(0, 3000)
  }

  #send(kind: Kind, to: Process, destination: number, length: number): boolean {
    const wantsReply = kind === 'get' || kind === 'call' || this.#random.chance(0.5)
    const entry = this.#ledger.open(kind, this.number, to.number, length, wantsReply)
    if (kind === 'call') {
      this.#call(entry, destination)
      return true
    }
    const status = this.#post(entry, destination)
    if (status === OK) return true
    this.#ledger.withdraw(entry)
    if (status !== NO_CREDIT && status !== NO_RESOURCE)
      throw new Broken(`${describe(entry)} was refused with ${status}`)
    return false
  }

  #post(entry: Entry, destination: number): number {
    const { id, kind, length, wantsReply } = entry
    const { endpoint } = this
    const reply = wantsReply ? 1 : 0
    if (kind === 'short') return endpoint.request(destination, SHORT, id, reply)
    if (kind === 'medium')
      return endpoint.requestMedium(destination, MEDIUM, payloadOf(id, length), id, reply)
    const place = this.#longs.get(destination) ?? 0
    const isLarge = length > PLACE_SIZE
    const inPlace = (isLarge ? PLACES : place) * PLACE_SIZE
    const status =
      kind === 'long'
        ? endpoint.requestLong(
            destination,
            LONG,
            payloadOf(id, length),
            this.number * AREA_SIZE + inPlace,
            id,
            reply,
          )
        : endpoint.get(
            destination,
            GOTTEN,
            SOURCE_AT,
            length,
            SOURCE_AT + SOURCE_SIZE + destination * AREA_SIZE + inPlace,
            id,
          )
    if (status !== OK) return status
    if (isLarge) this.#large.set(destination, entry)
    else this.#longs.set(destination, (place + 1) % PLACES)
    return status
  }

  #call(entry: Entry, destination: number): void {
    this.#calls++
    const payload = payloadOf(entry.id, entry.length)
    const over = (): void => {
      this.#calls--
    }
    this.endpoint
      .call(destination, CALL, payload, [entry.id, 1])
      .then(
        reply => {
          if (reply.word(0) !== entry.id)
            throw new Broken(`${describe(entry)} was answered as ${reply.word(0)}`)
          this.#ledger.noteReply(entry)
        },
        (error: Error & { code?: string; reason?: string }) => {
          if (!this.isAlive) return
          if (error.code !== 'ERR_AM_UNDELIVERABLE') throw new Broken(`${describe(entry)}: ${error.message}`)
          this.#ledger.noteReturn(entry, error.reason)
        },
      )
      .then(over, (error: unknown) => {
        over()
        this.fault ??= error
      })
  }

  /** What went wrong in a promise. */
  fault: unknown

  #handle(message: Message, kinds: readonly Kind[]): void {
    const entry = this.#ledger.find(message.word(0), kinds)
    this.#ledger.noteRun(entry, this.number)
    if (entry.kind !== 'short') {
      if (message.length !== entry.length)
        throw new Broken(`${describe(entry)} arrived with ${message.length} bytes`)
      checkPayload(entry, message.payload())
    }
    if (message.word(1) === 0) return
    if (entry.kind === 'medium') message.replyMedium(REPLY, message.copy(), entry.id)
    else message.reply(REPLY, entry.id)
  }

  #handleReply(message: Message): void {
    const entry = this.#ledger.find(message.word(0), ['short', 'medium', 'long'])
    if (entry.kind === 'medium') checkPayload(entry, message.payload())
    this.#ledger.noteReply(entry)
  }

  #handleGotten(message: Message): void {
    const entry = this.#ledger.find(message.word(0), ['get'])
    checkPayload(entry, message.payload(), entry.to)
    this.#ledger.noteReply(entry)
  }

  #handleReturned(message: Message): void {
    if (message.handler === REPLY) throw new Broken('a reply came back from a living process')
    this.#ledger.noteReturn(
      this.#ledger.find(message.word(0), ['short', 'medium', 'long', 'get']),
      message.reason,
    )
  }
}
