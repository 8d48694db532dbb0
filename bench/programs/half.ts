/**
 * One half of a contestant as a process: does what it is told, one line of JSON after the other, and answers each with a
 * line. Ends with its standard input.
 *
 *   argv: name of the contestant
 */
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Client, Contestant, Held } from '../contestants/contestant.ts'
import type { Counted, Question, Streamed, Usage } from '../half-questions.ts'
import { LatencyHistogram } from '../latency-histogram.ts'

const KIBI = 1024

const [name] = process.argv.slice(2)
const file = new URL(`../contestants/${name}.js`, import.meta.url)
const { contestant } = (await import(file.href)) as { contestant: Contestant }
let client: Client | undefined
let held: Held | undefined

for await (const line of createInterface({ input: process.stdin })) {
  try {
    print(await answer(JSON.parse(line) as Question))
  } catch (error) {
    print({ error: (error as Error).stack ?? String(error) })
  }
}
process.exit()

async function answer(question: Question): Promise<object> {
  switch (question.ask) {
    case 'serve':
      return { address: await contestant.serve() }
    case 'dial':
      client = await contestant.dial(question.address)
      return {}
    case 'pingPong':
      await able('pingPong')(question.size, question.warmUpMs, new LatencyHistogram())
      return await countLatencies(latencies => able('pingPong')(question.size, question.ms, latencies))
    case 'stream':
      return await stream(question.size, question.warmUpMs, question.ms)
    case 'connect':
      await able('connect')(question.warmUpMs, new LatencyHistogram())
      return await countLatencies(latencies => able('connect')(question.ms, latencies))
    case 'hold':
      held = await able('hold')(question.count)
      return {}
    case 'heldRoundTrips':
      await held?.roundTrips(question.warmUpMs, new LatencyHistogram())
      return await countLatencies(async latencies => await held?.roundTrips(question.ms, latencies))
    case 'letGo':
      await held?.close()
      held = undefined
      return {}
    case 'usage':
      return await usage()
    case 'memory':
      return { bytes: memoryBytes() }
    case 'close':
      await client?.close()
      return {}
  }
}

/** A method of the client half, which the contestant says it has. */
function able<K extends 'pingPong' | 'stream' | 'connect' | 'hold'>(ability: K): NonNullable<Client[K]> {
  const method = client?.[ability]
  if (client === undefined || method === undefined) throw new Error(`${name} cannot ${ability} now`)
  return method.bind(client) as NonNullable<Client[K]>
}

async function countLatencies(measure: (latencies: LatencyHistogram) => Promise<unknown>): Promise<Counted> {
  const latencies = new LatencyHistogram()
  const startMs = performance.now()
  await measure(latencies)
  return { ms: performance.now() - startMs, latencies: latencies.encode() }
}

/** All that was sent counts for CPU time, the warm-up too; for the rate only what came after it. */
async function stream(size: number, warmUpMs: number, ms: number): Promise<Streamed> {
  const warmUp = warmUpMs === 0 ? { bytes: 0 } : await able('stream')(size, warmUpMs)
  const received = await able('stream')(size, ms)
  return { ...received, bytesInAll: warmUp.bytes + received.bytes }
}

async function usage(): Promise<Usage> {
  const { user, system } = process.cpuUsage()
  return { cpuUs: user + system + ((await client?.partnerCpuUs?.()) ?? 0) }
}

/**
 * What this process takes of the machine's memory, without files such as the program of Node itself, most of which others
 * have mapped too. Memory that two processes share is counted half by each. The kernel's own, such as the buffers of TCP,
 * is not in it.
 */
function memoryBytes(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  const text = readFileSync('/proc/self/smaps_rollup', 'utf8')
  const kibi = (name: string): number => Number(new RegExp(`^${name}: +(\\d+) kB$`, 'm').exec(text)?.[1])
  return (kibi('Pss_Anon') + kibi('Pss_Shmem')) * KIBI
}

function print(value: object): void {
  process.stdout.write(`${JSON.stringify(value)}\n`)
}
