/**
 * The client of the name service's measurements. It uses the client library, without its memory of what was looked up,
 * or no library at all; prints one result and ends.
 *
 *   argv: address fill count                       registers names, and stays until its standard input ends
 *   argv: address watch count                      opens so many watches, and stays until its standard input ends
 *   argv: address look-ups|registrations seconds   as many as it can, 32 at a time
 *   argv: address paced|paced-plain seconds look-ups registrations   so many a second of each, whatever the answers take
 */
import { once } from 'node:events'
import { request } from 'node:http'
import { createHistogram } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { NameClient } from '../../nameservice/index.ts'
import { PlainAsker } from './plain-asker.ts'

const PARALLEL = 32
/** Not counted: this process has just been started, and what it runs is not compiled yet. */
const WARM_UP_MS = 2000
const OWN_COUNT = 1000
const NAME_COUNT = 10_000
const RECORD = {
  endpoint: '0123456789abcdef0123456789abcdef',
  host: 'fedcba9876543210fedcba9876543210',
  drivers: [{ name: 'shm', address: Buffer.alloc(40, 7).toString('base64') }],
  labels: { application: 'bench' },
}

const [address = '', what, ...numbers] = process.argv.slice(2)
const [first = 0, second = 0, third = 0] = numbers.map(Number)
const socketPath = address.slice('unix:'.length)
const client = new NameClient({ address, ttlMs: 600_000 })
const plain = what === 'paced-plain' ? new PlainAsker(socketPath) : undefined
const asker = plain ?? client.api
const nameOf = (index: number): string => `bench/${String(index % NAME_COUNT).padStart(5, '0')}`
const anyName = (): string => nameOf(Math.floor(Math.random() * NAME_COUNT))
const ownName = (index: number, pid: number | string): string => `own/${index}/${pid}`
const histogram = createHistogram()

if (what === 'fill') await fill(first)
else if (what === 'watch') await watch(first)
else if (what === 'paced' || what === 'paced-plain') await pace(first, second, third)
else await rush(first)

async function fill(count: number): Promise<void> {
  // One lease may not have all of them.
  const leases = [await client.api.grant(3_600_000), await client.api.grant(3_600_000)] as const
  let next = 0
  const work = async (): Promise<void> => {
    while (next < count) {
      const { id } = leases[next % 2 === 0 ? 0 : 1]
      await client.api.register(nameOf(next++), id, RECORD)
    }
  }
  await Promise.all(Array.from({ length: PARALLEL }, work))
  await stay({ names: count })
}

/** Each watch has other names: each change is delivered to one watch of a thousand. */
async function watch(count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const path = `/v1/watch?prefix=${nameOf((i * NAME_COUNT) / count).slice(0, -1)}&prefix=${ownName(i, '')}`
    const call = request({ socketPath, path, agent: false }).end()
    const [response] = await once(call, 'response')
    response.resume()
  }
  await stay({ watchers: count })
}

async function rush(seconds: number): Promise<void> {
  const ask = what === 'look-ups' ? () => asker.lookUp(anyName()) : await registrar()
  const startMs = performance.now()
  const countFromMs = startMs + WARM_UP_MS
  const endMs = countFromMs + seconds * 1000
  let count = 0
  const work = async (): Promise<void> => {
    while (performance.now() < endMs) {
      const sentMs = performance.now()
      await ask()
      if (sentMs >= countFromMs) count += record(sentMs)
    }
  }
  await Promise.all(Array.from({ length: PARALLEL }, work))
  print({ perSecond: Math.round(count / seconds), ...percentiles() })
}

async function pace(seconds: number, lookUps: number, registrations: number): Promise<void> {
  const register = await registrar()
  const startMs = performance.now()
  const endMs = startMs + WARM_UP_MS + seconds * 1000
  const sent = [0, 0]
  let open = 0
  for (let nowMs = startMs; nowMs < endMs; nowMs = performance.now()) {
    const elapsedS = (nowMs - startMs) / 1000
    const isCounted = nowMs - startMs > WARM_UP_MS
    for (const [kind, perSecond, ask] of [
      [0, lookUps, () => asker.lookUp(anyName())],
      [1, registrations, register],
    ] as const) {
      for (; (sent[kind] as number) < elapsedS * perSecond; sent[kind] = (sent[kind] as number) + 1) {
        open++
        void ask().then(() => {
          open--
          if (isCounted) record(nowMs)
        })
      }
    }
    await delay(1)
  }
  while (open > 0) await delay(1)
  plain?.close()
  print({ count: histogram.count, ...percentiles() })
}

/** Registers names that are there, under the same lease, again and again. */
async function registrar(): Promise<() => Promise<unknown>> {
  const { id } = await client.api.grant(3_600_000)
  let next = 0
  return () => asker.register(ownName(next++ % OWN_COUNT, process.pid), id, RECORD)
}

function record(sentMs: number): 1 {
  histogram.record(Math.max(1, Math.round((performance.now() - sentMs) * 1000)))
  return 1
}

function percentiles(): object {
  return { p50Ms: histogram.percentile(50) / 1000, p99Ms: histogram.percentile(99) / 1000 }
}

async function stay(result: object): Promise<void> {
  print(result)
  process.stdin.resume()
  await once(process.stdin, 'end')
  process.exit()
}

function print(result: object): void {
  process.stdout.write(`${JSON.stringify(result)}\n`)
  if (!('names' in result || 'watchers' in result)) void client.close()
}
