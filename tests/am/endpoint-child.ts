/** An endpoint of another process, which does what it is told (endpoint-questions in the type below). */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Endpoint, type EndpointOptions, OK, openEndpoint } from '../../am/index.ts'
import { driversOf } from '../support/driver-lists.ts'
import { patterned } from '../support/frames.ts'

/** Handlers that every such endpoint has. */
export const SINK = 1
export const ECHO = 2
export const ANSWER = 3
export const THROW = 4

export type Question =
  | { readonly ask: 'open'; readonly options?: EndpointOptions }
  | { readonly ask: 'map'; readonly destination: number; readonly name: string }
  | { readonly ask: 'unmap'; readonly destination: number }
  /** Sends requests to ECHO until `count` answers have come; each with `size` bytes of payload. */
  | { readonly ask: 'flood'; readonly destination: number; readonly count: number; readonly size: number }
  /** One call; answers with its words. */
  | { readonly ask: 'call'; readonly destination: number; readonly words: number[] }
  | { readonly ask: 'report' }
  | { readonly ask: 'close' }

export interface Report {
  readonly sunk: number
  readonly echoed: number
  readonly answered: number
  /** Payloads that were not what they should be. */
  readonly wrong: number
  readonly returned: number
  readonly rss: number
  readonly outstanding: number
}

const drivers = driversOf(process.argv[2])
let endpoint: Endpoint | undefined
const counts = { sunk: 0, echoed: 0, answered: 0, wrong: 0, returned: 0 }

process.on('message', (question: Question) => {
  answer(question).then(
    message => process.send?.(message),
    error => process.send?.({ error: { code: error.code, message: error.message } }),
  )
})

async function answer(question: Question): Promise<object> {
  if (question.ask === 'open') {
    endpoint = await openEndpoint({ drivers, ...question.options })
    setHandlers(endpoint)
    return { name: endpoint.name }
  }
  if (endpoint === undefined) throw new Error('no endpoint is open')
  switch (question.ask) {
    case 'map':
      await endpoint.map(question.destination, question.name)
      return {}
    case 'unmap':
      endpoint.unmap(question.destination)
      return {}
    case 'flood':
      return await flood(endpoint, question.destination, question.count, question.size)
    case 'call':
      return { words: (await endpoint.call(question.destination, ECHO, undefined, question.words)).words }
    case 'report':
      return report(endpoint)
    case 'close':
      await endpoint.close()
      return {}
  }
}

function setHandlers(endpoint: Endpoint): void {
  endpoint.setHandler(0, () => void counts.returned++)
  endpoint.setHandler(SINK, () => void counts.sunk++)
  endpoint.setHandler(ECHO, message => {
    counts.echoed++
    if (message.length === 0) message.reply(ANSWER, message.word(0), message.word(1))
    else message.replyMedium(ANSWER, message.payload(), message.word(0), message.word(1))
  })
  endpoint.setHandler(ANSWER, message => {
    counts.answered++
    if (!patterned(message.length, message.word(0) % 8).equals(message.payload())) counts.wrong++
  })
  endpoint.setHandler(THROW, () => {
    throw new Error('as it was told to')
  })
}

async function flood(endpoint: Endpoint, destination: number, count: number, size: number): Promise<Report> {
  const payloads = Array.from({ length: 8 }, (_, i) => patterned(size, i))
  const expected = counts.answered + count
  for (let i = 0; i < count; i++) {
    const payload = payloads[i % 8] as Buffer
    while (endpoint.requestMedium(destination, ECHO, payload, i) !== OK) await endpoint.ready(destination)
  }
  while (counts.answered < expected) await nextTurn()
  return report(endpoint)
}

function report(endpoint: Endpoint): Report {
  const { peers } = endpoint.stats()
  const outstanding = peers.reduce((sum, peer) => sum + peer.outstanding, 0)
  return { ...counts, rss: process.memoryUsage.rss(), outstanding }
}
