/** One simulated process that serves RPC, and calls that of the others: results, errors, streams, deadlines, cancelled calls. */
import { type Endpoint, openEndpoint } from '../../am/index.ts'
import {
  bytesCodec,
  type CallContext,
  type Client,
  connectService,
  defineService,
  method,
  serve,
  stream,
} from '../../am/rpc/index.ts'
import { openProcess } from '../../am/simulated-process.ts'
import type { FaultRandom } from '../../nic/fault/fault-random.ts'
import type { SimulatedHost, SimulatedKernels, SimulatedNetwork } from '../../nic/simulated/index.ts'
import { Broken, findDifference, payloadOf } from './ledger.ts'
import { type Player, QUEUE_SIZE } from './world.ts'

const CREDITS = 16
/** Calls of one process under way. */
const CALLS_MAX = 24
/** Longest argument, which takes several messages, and most handlers take at most so long. */
const INPUT_MAX = 40_000
const HANDLER_MS_MAX = 20
const TIMEOUT_MS_MAX = 30
const ITEMS_MAX = 32
const ITEM_SIZE = 12_000
/** Argument of a call: its number, then bytes of its own. */
const NUMBER_SIZE = 4

const codecs = { input: bytesCodec, output: bytesCodec }
const SERVICE = defineService(
  {
    echo: method<Uint8Array, Uint8Array>(codecs),
    late: method<Uint8Array, Uint8Array>(codecs),
    fails: method<Uint8Array, Uint8Array>(codecs),
    items: stream<Uint8Array, Uint8Array>(codecs),
  },
  { name: 'simulated', codec: bytesCodec },
)
type MethodName = keyof typeof SERVICE.methods

export interface Call {
  readonly id: number
  readonly to: RpcProcess
  readonly from: RpcProcess
  readonly name: MethodName
  /** Handlers that have begun, and that have ended. */
  begun: number
  ended: number
  /** How the caller saw it end. */
  outcome: 'pending' | 'result' | 'error'
  hasDeadline: boolean
  isCancelled: boolean
}

export class RpcProcess implements Player {
  readonly number: number
  readonly host: SimulatedHost
  readonly endpoint: Endpoint
  readonly clients = new Map<RpcProcess, Client<typeof SERVICE.methods>>()
  /** It has closed its endpoint, died, or lost its NIC. */
  isOver = false
  underWay = 0
  fault: unknown
  readonly #random: FaultRandom
  readonly #calls: Call[]

  private constructor(host: SimulatedHost, endpoint: Endpoint, random: FaultRandom, calls: Call[]) {
    this.number = host.number
    this.host = host
    this.endpoint = endpoint
    this.#random = random
    this.#calls = calls
    serve(endpoint, SERVICE, {
      echo: input => this.#begin(input).answer(),
      late: async input => {
        const { answer } = this.#begin(input)
        await this.#pause()
        return answer()
      },
      fails: input => {
        this.#begin(input).answer()
        throw Object.assign(new Error('as asked'), { code: 'E_ASKED' })
      },
      items: (input, context) => this.#items(input, context),
    })
  }

  static async open(
    network: SimulatedNetwork,
    kernels: SimulatedKernels,
    host: SimulatedHost,
    random: FaultRandom,
    calls: Call[],
  ): Promise<RpcProcess> {
    const { runtime, driver } = openProcess(network, kernels, host, false, QUEUE_SIZE)
    const options = { drivers: [driver], credits: CREDITS }
    return new RpcProcess(host, await openEndpoint(options, runtime), random, calls)
  }

  get isAlive(): boolean {
    return this.host.state !== 'dead' && !this.isOver
  }

  /** Always: handlers and callers are promises. */
  get isWaiting(): boolean {
    return true
  }

  async connect(to: RpcProcess): Promise<void> {
    const client = await connectService(this.endpoint, to.endpoint.name, SERVICE)
    this.clients.set(to, client)
  }

  act(): void {
    const random = this.#random
    const peers = [...this.clients]
    const chosen = peers[random.within(0, peers.length - 1)]
    if (chosen === undefined || this.host.state !== 'running' || this.underWay >= CALLS_MAX) return
    const [to, client] = chosen
    const dice = random.within(0, 99)
    const name = dice < 60 ? 'echo' : dice < 85 ? 'late' : dice < 96 ? 'fails' : 'items'
    const hasDeadline = random.chance(0.1)
    const isCancelled = random.chance(0.1)
    const id = this.#calls.length
    const call: Call = {
      id,
      to,
      from: this,
      name,
      begun: 0,
      ended: 0,
      outcome: 'pending',
      hasDeadline,
      isCancelled,
    }
    this.#calls.push(call)
    const length = random.within(0, random.chance(0.1) ? INPUT_MAX : 300)
    const input = Buffer.concat([Buffer.alloc(NUMBER_SIZE), payloadOf(id, length)])
    input.writeUInt32LE(id)
    const aborting = new AbortController()
    if (isCancelled) this.host.clock.setTimeout(() => aborting.abort(), random.within(0, TIMEOUT_MS_MAX))
    const options = {
      ...(hasDeadline && { timeoutMs: random.within(1, TIMEOUT_MS_MAX) }),
      ...(isCancelled && { signal: aborting.signal }),
    }
    this.underWay++
    const result =
      name === 'items' ? this.#collect(call, client.items(input, options)) : client[name](input, options)
    result
      .then(
        bytes => this.#handleResult(call, bytes, length),
        (error: Error & { code?: string; reason?: string }) => this.#handleError(call, error),
      )
      .catch((error: unknown) => {
        this.fault ??= error
      })
      .finally(() => {
        this.underWay--
      })
  }

  close(): Promise<void> {
    return this.endpoint.close()
  }

  #begin(input: Uint8Array): { readonly call: Call; readonly answer: () => Uint8Array } {
    const id = Buffer.from(input).readUInt32LE(0)
    const call = this.#calls[id]
    if (call === undefined || call.to !== this) throw this.#note(`call ${id} has another server`)
    if (++call.begun > 1) throw this.#note(`the handler of ${describe(call)} ran twice`)
    const bytes = input.subarray(NUMBER_SIZE)
    if (findDifference(id, bytes) >= 0) throw this.#note(`the argument of ${describe(call)} is another`)
    const answer = (): Uint8Array => {
      call.ended++
      return bytes
    }
    return { call, answer }
  }

  async *#items(input: Uint8Array, context: CallContext): AsyncGenerator<Uint8Array> {
    const { call, answer } = this.#begin(input)
    try {
      for (let i = 0; i < ITEMS_MAX; i++) {
        if (i % 8 === 7) await this.#pause()
        if (context.signal.aborted) return
        yield payloadOf(call.id, ITEM_SIZE, i)
      }
    } finally {
      answer()
    }
  }

  /** Some callers are slow. */
  async #collect(call: Call, items: AsyncIterable<Uint8Array>): Promise<undefined> {
    let count = 0
    const isSlow = this.#random.chance(0.2)
    for await (const item of items) {
      if (item.length !== ITEM_SIZE || findDifference(call.id, item, count) >= 0)
        throw this.#note(`item ${count} of ${describe(call)} is another`)
      count++
      if (isSlow && count % 8 === 0) await this.#pause()
    }
    if (count !== ITEMS_MAX && !call.hasDeadline && !call.isCancelled)
      throw this.#note(`${describe(call)} ended after ${count} items of ${ITEMS_MAX}`)
    return undefined
  }

  #handleResult(call: Call, bytes: Uint8Array | undefined, length: number): void {
    this.#settle(call, 'result')
    if (call.name === 'fails') throw new Broken(`${describe(call)} has a result`)
    if (call.begun === 0) throw new Broken(`${describe(call)} has a result, and was not handled`)
    if (bytes !== undefined && (bytes.length !== length || findDifference(call.id, bytes) >= 0))
      throw new Broken(`the result of ${describe(call)} is another`)
  }

  #handleError(call: Call, error: Error & { code?: string; reason?: string }): void {
    this.#settle(call, 'error')
    if (error instanceof Broken) throw error
    const isExpected =
      (call.name === 'fails' && error.code === 'E_ASKED' && call.begun === 1) ||
      (call.hasDeadline && error.code === 'ERR_RPC_DEADLINE') ||
      (call.isCancelled && (error.name === 'AbortError' || error.code === 'ERR_RPC_CANCELLED')) ||
      (error.code === 'ERR_RPC_UNAVAILABLE' && (!call.to.isAlive || !this.isAlive)) ||
      !this.isAlive
    if (!isExpected) throw new Broken(`${describe(call)} failed: ${error.code} ${error.message}`)
  }

  #settle(call: Call, outcome: 'result' | 'error'): void {
    if (call.outcome !== 'pending') throw new Broken(`${describe(call)} is settled twice`)
    call.outcome = outcome
  }

  /** Handlers' exceptions go to the caller: this one ends the simulation, too. */
  #note(what: string): Broken {
    const broken = new Broken(what)
    this.fault ??= broken
    return broken
  }

  #pause(): Promise<void> {
    return new Promise(resolve => {
      this.host.clock.setTimeout(resolve, this.#random.within(0, HANDLER_MS_MAX))
    })
  }
}

export function describe({ id, name, from, to }: Call): string {
  return `call ${id} of ${name} from process ${from.number} to ${to.number}`
}
