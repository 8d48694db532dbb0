/** A process with several endpoints, all of which talk to one and the same endpoint of another process. */
import { type Endpoint, OK, openEndpoint } from '../../am/index.ts'
import { optionsOf } from '../support/driver-lists.ts'
import { until } from '../support/until.ts'
import { ANSWER, ECHO, SINK } from './endpoint-questions.ts'

const [listName, hub, endpointCount, messageCount] = process.argv.slice(2)
const options = optionsOf(listName)
const COUNT = Number(messageCount)

/** Messages of the hub, which may come before the order to talk. */
const sunk = new Map<Endpoint, number>()

async function talk(endpoint: Endpoint, number: number): Promise<void> {
  await endpoint.map(0, hub as string)
  for (let i = 0; i < COUNT; i++) {
    const reply = await endpoint.call(0, ECHO, undefined, [number, i])
    if (reply.word(0) !== number || reply.word(1) !== i) throw new Error('another reply')
    while (endpoint.request(0, SINK, number) !== OK) await endpoint.ready(0)
  }
  await until('all messages of the hub', () => sunk.get(endpoint) === COUNT)
}

const endpoints: Endpoint[] = []
for (let i = 0; i < Number(endpointCount); i++) {
  const endpoint = await openEndpoint(options)
  endpoint.setHandler(SINK, () => void sunk.set(endpoint, (sunk.get(endpoint) ?? 0) + 1))
  endpoints.push(endpoint)
}
process.send?.({ names: endpoints.map(({ name }) => name) })
await new Promise(resolve => process.once('message', resolve))
await Promise.all(endpoints.map((endpoint, i) => talk(endpoint, process.pid + i)))
process.send?.({ handled: endpoints.map(endpoint => endpoint.stats().handled), answer: ANSWER })
await new Promise(resolve => process.once('message', resolve))
await Promise.all(endpoints.map(endpoint => endpoint.close()))
process.disconnect()
