/** How much memory ten thousand calls leave behind, in a process without a test runner. */
import { type Endpoint, OK, openEndpoint } from '../../am/index.ts'
import { driversOf } from '../support/driver-lists.ts'
import { liveMemory } from '../support/garbage.ts'

const CALLS = 500
const WARM_UP = 10
const ROUNDS = 20
const ECHO = 1
const ANSWER = 2

const [listName, mode] = process.argv.slice(2)
const warnings: string[] = []
process.on('warning', warning => warnings.push(String(warning)))
const drivers = driversOf(listName)
const isAnswered = mode === 'answered'
const a = await openEndpoint({ drivers })
const b = await openEndpoint({ drivers, progress: isAnswered ? 'event-loop' : 'manual' })
b.setHandler(ECHO, message => message.reply(ANSWER, message.word(0)))
await a.map(0, b.name)
if (!isAnswered) while (a.request(0, ECHO) === OK) {}

/** All with one signal and a time-out; they are answered, or time out while they wait for a credit. */
async function callMany(endpoint: Endpoint, signal: AbortSignal): Promise<number> {
  const timeoutMs = isAnswered ? 60_000 : 1
  const calls = Array.from({ length: CALLS }, (_, i) =>
    endpoint.call(0, ECHO, undefined, [i], { signal, timeoutMs }),
  )
  const outcomes = await Promise.allSettled(calls)
  return outcomes.filter(({ status }) => status === 'fulfilled').length
}

const { signal } = new AbortController()
for (let i = 0; i < WARM_UP; i++) await callMany(a, signal)
const before = await liveMemory()
let answered = 0
for (let i = 0; i < ROUNDS; i++) answered += await callMany(a, signal)
const growth = (await liveMemory()) - before
process.send?.({ growth, answered, count: CALLS * ROUNDS, warnings })
await Promise.all([a.close(), b.close()])
process.disconnect()
