/**
 * Messages of RPC from a peer that keeps to active messages and to nothing above them: to services, streams and ports of an
 * endpoint. Words and payloads are the channel's copies before RPC sees them, so a peer cannot change them while they are checked.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { serialize } from 'node:v8'
import { type Endpoint, OK, openEndpoint } from '../../../../am/index.ts'
import {
  acceptPorts,
  connectService,
  defineService,
  method,
  serve,
  stream,
} from '../../../../am/rpc/index.ts'
import {
  FLAG_BUFFER,
  FLAG_BYTES,
  FLAG_EMPTY,
  FLAG_ERROR,
  FLAG_LAST,
  FLAG_OPENER,
  FLAG_TEXT,
  KIND_BITS,
  KIND_CANCEL,
  KIND_CREDIT,
  KIND_DATA,
  KIND_HELLO,
  KIND_OPEN,
  RPC_HANDLER,
  RPC_VERSION,
} from '../../../../am/rpc/rpc-layout.ts'
import type { Random } from '../../../support/random.ts'
import type { Attack, Kind } from '../kind.ts'
import { spoil } from '../spoil.ts'

/** Messages between two turns of the event loop, in which handlers of the victim run. */
const MESSAGES_A_TURN = 16
const PIECE_MAX = 65_536
const OPTIONS = { drivers: ['loopback'], progress: 'manual' } as const
const FLAGS = [FLAG_LAST, FLAG_EMPTY, FLAG_ERROR, FLAG_OPENER, FLAG_BYTES, FLAG_BUFFER, FLAG_TEXT]
const VALUES = [undefined, 7, 'text', { deep: [1n, new Map([[1, 2]])] }, new Uint8Array(300), new Date(0)]

const attacked = defineService({
  echo: method<unknown, unknown>(),
  later: method<unknown, unknown>(),
  hang: method<unknown, void>(),
  count: stream<unknown, number>(),
})

/** One peer that breaks the protocol of RPC. */
class Attacker {
  readonly endpoint: Endpoint
  readonly #random: Random
  #lastCall = 0

  constructor(endpoint: Endpoint, random: Random) {
    this.endpoint = endpoint
    this.#random = random
  }

  /** False if there is no credit or room. */
  say(): boolean {
    const random = this.#random
    const payload = random.chance(0.6) ? this.#payload() : undefined
    const words = this.#words(payload?.length ?? 0)
    if (random.chance(0.1)) words[random.within(0, words.length - 1)] = random.word() | 0
    const status =
      payload === undefined
        ? this.endpoint.request(0, RPC_HANDLER, ...words)
        : this.endpoint.requestMedium(0, RPC_HANDLER, payload, ...words)
    return status === OK
  }

  /** Without a link nothing but HELLO is looked at. */
  sayHello(): void {
    this.endpoint.request(0, RPC_HANDLER, KIND_HELLO, RPC_VERSION, 0, 0, PIECE_MAX)
  }

  #payload(): Buffer {
    const random = this.#random
    if (random.chance(0.1)) return random.bytes(random.within(0, 2000))
    const names = ['', 'port p', 'none']
    if (random.chance(0.1)) return Buffer.from(names[random.within(0, 2)] as string)
    return spoil(random, serialize(VALUES[random.within(0, VALUES.length - 1)]))
  }

  #words(length: number): number[] {
    const random = this.#random
    const kind = random.pick([
      KIND_OPEN,
      KIND_OPEN,
      KIND_OPEN,
      KIND_DATA,
      KIND_CREDIT,
      KIND_CANCEL,
      KIND_HELLO,
    ])
    const isPlain = random.chance(0.4)
    let flags = isPlain ? FLAG_OPENER : 0
    if (!isPlain) for (const flag of FLAGS) if (random.chance(0.3)) flags |= flag
    const call = random.chance(0.7) ? this.#lastCall : random.within(-1, 50)
    if (kind === KIND_OPEN) {
      this.#lastCall++
      const service = random.within(0, 3)
      const timeoutMs = random.pick([0, 0, 1, 5000])
      return [kind | flags, this.#lastCall, length, 0, service, random.within(0, 4), timeoutMs]
    }
    if (kind === KIND_DATA) {
      const total = random.chance(0.7) ? length : random.within(0, 200_000)
      return [kind | flags, call, total, random.chance(0.8) ? 0 : random.within(0, 3000)]
    }
    if (kind === KIND_CREDIT) return [kind | flags, call, random.within(-1, 300_000), random.within(-1, 300)]
    if (kind === KIND_CANCEL) return [kind | flags, call, 0, 0, random.within(0, 3)]
    return [kind, RPC_VERSION, 0, 0, random.pick([1, 100, PIECE_MAX])]
  }
}

export const rpcMessages: Kind = {
  name: 'rpc-messages',
  what: 'messages of RPC, to services, streams and ports of an endpoint',
  reaches: ['handler', 'stream', 'port', 'port message', 'answer', 'item', 'link'],
  async open() {
    const counts: Record<string, number> = {}
    const note = (what: string): void => {
      counts[what] = (counts[what] ?? 0) + 1
    }
    const endpoint = await openEndpoint(OPTIONS)
    serve(endpoint, attacked, {
      echo: value => {
        note('handler')
        return value
      },
      later: async value => {
        await nextTurn()
        return value
      },
      hang: (_, { signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      async *count() {
        note('stream')
        for (let i = 0; ; i++) yield i
      },
    })
    acceptPorts(endpoint, { channel: 'p' }, port => {
      note('port')
      port.on('message', () => note('port message'))
      port.on('messageerror', () => note('port message'))
    })
    return {
      async attack({ random, inputs, victim, count }: Attack) {
        for (const what in counts) counts[what] = 0
        const own = await openEndpoint(OPTIONS)
        own.setHandler(RPC_HANDLER, message => {
          const kind = message.word(0) & KIND_BITS
          if (!message.isRequest) count('answer')
          else if (kind === KIND_DATA) count('item')
          else if (kind === KIND_HELLO) count('link')
        })
        await own.map(0, endpoint.name)
        const attacker = new Attacker(own, random)
        for (let said = 0; said < inputs; ) {
          if (random.chance(0.3)) attacker.sayHello()
          for (let i = 0; i < MESSAGES_A_TURN && attacker.say(); i++) said++
          victim(() => endpoint.poll(random.within(1, 100)))
          if (random.chance(0.5)) own.poll()
          // Its handlers run in microtasks, and give credits back in immediates.
          await nextTurn()
          victim(() => endpoint.poll())
          own.poll()
        }
        await own.close()
        victim(() => endpoint.poll())
        await nextTurn()
        for (const [what, more] of Object.entries(counts)) count(what, more)
      },
      async honest() {
        const own = await openEndpoint(OPTIONS)
        const timer = setInterval(() => {
          own.poll()
          endpoint.poll()
        }, 1)
        const client = await connectService(own, endpoint.name, attacked)
        const heard = await client.echo(42)
        clearInterval(timer)
        await own.close()
        if (heard !== 42) throw new Error(`an honest call was answered by ${heard}`)
      },
      close: () => endpoint.close(),
    }
  },
}
