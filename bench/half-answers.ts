/**
 * One half of a contestant: answers the bench's questions. `programs/half.ts` runs a half as a process,
 * `programs/half-thread.ts` as a thread.
 */
import { readFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Client, Contestant, Held, Role } from './contestants/contestant.ts'
import { isRelinked } from './contestants/wire.ts'
import type { Counted, Failed, Question, Streamed, Usage } from './half-questions.ts'
import { LatencyHistogram } from './latency-histogram.ts'

const KIBI = 1024

export class HalfAnswers {
  readonly #contestant: Contestant
  #client: Client | undefined
  #held: Held | undefined

  static async of(name: string): Promise<HalfAnswers> {
    const file = new URL(`./contestants/${name}.js`, import.meta.url)
    const { contestant } = (await import(file.href)) as { contestant: Contestant }
    return new HalfAnswers(contestant)
  }

  private constructor(contestant: Contestant) {
    this.#contestant = contestant
  }

  async answer(question: Question): Promise<object> {
    switch (question.ask) {
      case 'serve':
        this.#assertPreload('server')
        return { address: await this.#contestant.serve() }
      case 'dial':
        this.#assertPreload('client')
        this.#client = await this.#contestant.dial(question.address)
        return {}
      case 'pingPong': {
        const { size, warmUpMs, ms } = question
        await this.#able('pingPong')(size, warmUpMs, new LatencyHistogram())
        return await countLatencies(latencies => this.#able('pingPong')(size, ms, latencies))
      }
      case 'stream':
        return await this.#stream(question.size, question.warmUpMs, question.ms)
      case 'connect': {
        const { warmUpMs, ms, options } = question
        await this.#able('connect')(warmUpMs, new LatencyHistogram(), options)
        return await countLatencies(latencies => this.#able('connect')(ms, latencies, options))
      }
      case 'hold':
        this.#held = await this.#able('hold')(question.count)
        return {}
      case 'heldRoundTrips':
        await this.#held?.roundTrips(question.warmUpMs, new LatencyHistogram())
        return await countLatencies(async latencies => await this.#held?.roundTrips(question.ms, latencies))
      case 'release':
        await this.#held?.close()
        this.#held = undefined
        return {}
      case 'usage':
        return await this.#usage()
      case 'memory':
        return { bytes: memoryBytes() }
      case 'close':
        await this.#client?.close()
        return {}
    }
  }

  #assertPreload(role: Role): void {
    const isMeant = this.#contestant.relinked.includes(role)
    if (isRelinked() === isMeant) return
    throw new Error(
      `this half is ${isMeant ? 'plain, and should be relinked' : 'relinked, and should be plain'}`,
    )
  }

  /** A method of the client half, which the contestant says it has. */
  #able<K extends 'pingPong' | 'stream' | 'connect' | 'hold'>(ability: K): NonNullable<Client[K]> {
    const method = this.#client?.[ability]
    if (this.#client === undefined || method === undefined)
      throw new Error(`${this.#contestant.name} cannot ${ability} now`)
    return method.bind(this.#client) as NonNullable<Client[K]>
  }

  /** All that was sent counts for CPU time, the warm-up too; for the rate only what came after it. */
  async #stream(size: number, warmUpMs: number, ms: number): Promise<Streamed> {
    const warmUp = warmUpMs === 0 ? { bytes: 0 } : await this.#able('stream')(size, warmUpMs)
    const received = await this.#able('stream')(size, ms)
    return { ...received, bytesInAll: warmUp.bytes + received.bytes }
  }

  async #usage(): Promise<Usage> {
    const { user, system } = process.cpuUsage()
    return { cpuUs: user + system + ((await this.#client?.partnerCpuUs?.()) ?? 0) }
  }
}

/** The result of `act`, or its error as text, which a line of JSON can carry. */
export async function orFailed(act: () => Promise<object>): Promise<object | Failed> {
  try {
    return await act()
  } catch (error) {
    return { error: (error as Error).stack ?? String(error) }
  }
}

async function countLatencies(measure: (latencies: LatencyHistogram) => Promise<unknown>): Promise<Counted> {
  const latencies = new LatencyHistogram()
  const startMs = performance.now()
  await measure(latencies)
  return { ms: performance.now() - startMs, latencies: latencies.encode() }
}

/**
 * The memory of this process, without mapped files such as the Node executable, which other processes share. Memory
 * shared by two processes counts half in each. Kernel memory, such as the buffers of TCP, is not included.
 */
function memoryBytes(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  const text = readFileSync('/proc/self/smaps_rollup', 'utf8')
  const kibi = (name: string): number => Number(new RegExp(`^${name}: +(\\d+) kB$`, 'm').exec(text)?.[1])
  return (kibi('Pss_Anon') + kibi('Pss_Shmem')) * KIBI
}
