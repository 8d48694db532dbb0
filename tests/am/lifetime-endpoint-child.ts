/** A process that opens an endpoint, does one thing, and then has nothing else that would keep it alive. */
import { type Endpoint, openEndpoint, pollerStats } from '../../am/index.ts'
import { optionsOf } from '../support/driver-lists.ts'
import { ANSWER, ECHO, SINK } from './endpoint-questions.ts'

const CLOSE = 20
const POLLER = 21

const [listName, mode, peerName] = process.argv.slice(2)
const isManual = mode?.startsWith('manual') ?? false
const endpoint = await openEndpoint({ ...optionsOf(listName), progress: isManual ? 'manual' : 'event-loop' })

function setHandlers(endpoint: Endpoint): void {
  endpoint.setHandler(ECHO, message => message.reply(ANSWER, message.word(0)))
  endpoint.setHandler(CLOSE, message => {
    message.reply(ANSWER)
    void endpoint.close()
  })
  endpoint.setHandler(POLLER, message => {
    const { turns } = pollerStats()
    const { user, system } = process.cpuUsage()
    message.reply(ANSWER, turns, Math.round((user + system) / 1000))
  })
}

setHandlers(endpoint)
await endpoint.map(0, peerName as string)
process.send?.({ name: endpoint.name })
process.disconnect()

const modes: Record<string, () => unknown> = {
  manual: () => {},
  'manual, after a wait': async () => {
    while (endpoint.poll() === 0) await endpoint.wait()
  },
  'manual, after a ref': () => endpoint.ref(),
  'event loop': () => {},
  'event loop, unreferenced': () => endpoint.unref(),
  'event loop, referenced again': () => {
    endpoint.unref()
    endpoint.ref()
  },
  'event loop, after a call': async () => {
    await endpoint.call(0, ECHO)
    await endpoint.close()
  },
  'event loop, messages on their way': async () => {
    for (let i = 0; i < 64; i++) endpoint.request(0, SINK, i)
    await endpoint.close()
  },
  'event loop, unreferenced, with a stream': () => {
    endpoint.messages(SINK).subscribe()
    endpoint.unref()
  },
  'process.exit': () => process.exit(0),
}
await modes[mode as string]?.()
