/** An endpoint of another process or thread, driven by the questions of endpoint-questions.ts. */
import { parentPort } from 'node:worker_threads'
import { type Endpoint, OK, openEndpoint } from '../../am/index.ts'
import { optionsOf } from '../support/driver-lists.ts'
import { patterned } from '../support/frames.ts'
import { liveMemory } from '../support/garbage.ts'
import { until } from '../support/until.ts'
import { ANSWER, ECHO, type Question, type Report, SINK, THROW } from './endpoint-questions.ts'

/** By default every driver that works here. */
const defaults = process.argv[2] === 'all' ? {} : optionsOf(process.argv[2])
let endpoint: Endpoint | undefined
const counts = { sunk: 0, echoed: 0, answered: 0, wrong: 0, returned: 0 }

const parent = parentPort ?? process
const send = (message: object): void => void (parentPort?.postMessage(message) ?? process.send?.(message))

parent.on('message', (question: Question) => {
  answer(question).then(send, error => send({ error: { code: error.code, message: error.message } }))
})

async function answer(question: Question): Promise<object> {
  if (question.ask === 'open') {
    endpoint = await openEndpoint({ ...defaults, ...question.options })
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
    case 'produce':
      return await produce(endpoint, question.destination, question.count, question.size)
    case 'call':
      return { words: (await endpoint.call(question.destination, ECHO, undefined, question.words)).words }
    case 'report':
      return await report(endpoint)
    case 'stats':
      return endpoint.stats()
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
  await until('the answers', () => counts.answered >= expected)
  return await report(endpoint)
}

async function produce(
  endpoint: Endpoint,
  destination: number,
  count: number,
  size: number,
): Promise<object> {
  const payload = patterned(size, 1)
  const beginMs = performance.now()
  for (let i = 0; i < count; i++) {
    while (endpoint.requestMedium(destination, SINK, payload, i) !== OK) await endpoint.ready(destination)
  }
  await until('all credits', () => outstandingOf(endpoint) === 0)
  const ms = performance.now() - beginMs
  return { ...(await report(endpoint)), ms }
}

function outstandingOf(endpoint: Endpoint): number {
  return endpoint.stats().peers.reduce((sum, peer) => sum + peer.outstanding, 0)
}

async function report(endpoint: Endpoint): Promise<Report> {
  return {
    ...counts,
    outstanding: outstandingOf(endpoint),
    live: await liveMemory(),
    rss: process.memoryUsage.rss(),
  }
}
