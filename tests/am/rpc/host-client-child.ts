/** Calls the printer of another host. argv: a driver; the name of the endpoint. Answers with what it found, step by step. */
import { openEndpoint } from '../../../am/index.ts'
import { connectService, WINDOW_BYTES } from '../../../am/rpc/index.ts'
import { eventually } from '../../support/until.ts'
import { printer } from './printer.ts'

const ITEM_BYTES = 16 * 1024

const [driver = '', name = ''] = process.argv.slice(2)
const endpoint = await openEndpoint({ drivers: [driver] })
const client = await connectService(endpoint, name, printer)
process.once('disconnect', () => process.exit(0))

export interface Answered {
  readonly driver: string
  readonly sizes: readonly number[]
  readonly isWhole: boolean
}

export interface Flooded {
  readonly produced: number
  readonly bound: number
  readonly items: number
}

export interface Lost {
  readonly codes: readonly string[]
}

async function answer(): Promise<Answered> {
  const sizes: number[] = []
  let isWhole = true
  for (const size of [0, 64, 65_537, 1 << 20]) {
    const bytes = Buffer.alloc(size, 'x')
    const back = await client.bytes(bytes)
    sizes.push(back.length)
    isWhole &&= Buffer.compare(back, bytes) === 0
  }
  return { driver: endpoint.stats().peers[0]?.driver ?? '', sizes, isWhole }
}

async function flood(items: number): Promise<Flooded> {
  const stream = client.flood({ items, bytes: ITEM_BYTES })
  await stream.next()
  let produced = -1
  await eventually('the handler to stop', async () => {
    const now = await client.produced()
    const hasStopped = now === produced
    produced = now
    return hasStopped
  })
  let read = 1
  for await (const _ of stream) read++
  return { produced, bound: WINDOW_BYTES / ITEM_BYTES + 2, items: read }
}

async function lose(): Promise<Lost> {
  const codeOf = (error: { code?: string; reason?: string }): string => `${error.code} ${error.reason}`
  const calls = Array.from({ length: 100 }, () => client.hang().then(() => 'answered', codeOf))
  const stream = client.count(1e9)
  await stream.next()
  const rest = (async () => {
    for await (const _ of stream);
    return 'ended'
  })().catch(codeOf)
  process.send?.({ isReady: true })
  return { codes: await Promise.all([...calls, rest]) }
}

process.send?.(await answer())
process.send?.(await flood(2000))
process.send?.(await lose())
