/** Active messages, polling or by the event loop. Short up to one word, medium up to 64 KiB, long above. */
import { openEndpoint } from '../../am/index.ts'
import { creditsSetting } from '../half-settings.ts'
import type { LatencyHistogram } from '../latency-histogram.ts'
import type { Client, Received } from './contestant.ts'
import { leaveWithParent } from './parent.ts'

type Endpoint = Awaited<ReturnType<typeof openEndpoint>>

const ECHO_SHORT = 1
const ECHO_MEDIUM = 2
const ECHO_LONG = 3
const SINK = 4
const COUNT = 5
const STOP = 6
const ANSWER = 7

const WORD_SIZE = 4
const SEGMENT_SIZE = 4 * 1024 * 1024
const PEER = 0

const options = (polls: boolean) =>
  ({
    progress: polls ? 'manual' : 'event-loop',
    drivers: ['shm'],
    segment: SEGMENT_SIZE,
    ...creditsSetting(),
  }) as const

export async function serveMessages(polls: boolean): Promise<string> {
  const endpoint = await openEndpoint(options(polls))
  let bytes = 0
  let startMs = 0
  let isPolling = false
  endpoint.setHandler(ECHO_SHORT, message => {
    isPolling = polls
    message.reply(ANSWER, message.word(0))
  })
  endpoint.setHandler(ECHO_MEDIUM, message => {
    isPolling = polls
    message.replyMedium(ANSWER, message.payload())
  })
  endpoint.setHandler(ECHO_LONG, message => {
    isPolling = polls
    message.replyLong(ANSWER, message.payload(), 0)
  })
  endpoint.setHandler(SINK, message => {
    isPolling = polls
    if (bytes === 0) startMs = performance.now()
    // A short message carries its size in its word.
    bytes += message.length === 0 ? message.word(0) : message.length
  })
  endpoint.setHandler(COUNT, message => {
    const received: Received = { bytes, ms: performance.now() - startMs }
    bytes = 0
    message.replyMedium(ANSWER, Buffer.from(JSON.stringify(received)))
  })
  endpoint.setHandler(STOP, message => {
    isPolling = false
    message.reply(ANSWER)
  })
  if (polls) void pollWhenever(endpoint, () => isPolling)
  return endpoint.name
}

/** Polls from the first message on until it is told to stop; in between, the event loop runs. */
async function pollWhenever(endpoint: Endpoint, isPolling: () => boolean): Promise<void> {
  for (;;) {
    await endpoint.wait()
    do poll(endpoint)
    while (isPolling())
  }
}

export async function dialMessages(address: string, polls: boolean): Promise<Client> {
  const endpoint = await openEndpoint(options(polls))
  await endpoint.map(PEER, address)
  return polls ? new PollingClient(endpoint) : new WaitingClient(endpoint)
}

/** Sends one message of `payload`'s size; a status. */
function send(endpoint: Endpoint, payload: Buffer, isEcho: boolean): number {
  const size = payload.length
  if (size <= WORD_SIZE) return endpoint.request(PEER, isEcho ? ECHO_SHORT : SINK, size)
  if (size <= endpoint.limits.medium)
    return endpoint.requestMedium(PEER, isEcho ? ECHO_MEDIUM : SINK, payload)
  return endpoint.requestLong(PEER, isEcho ? ECHO_LONG : SINK, payload, 0)
}

function poll(endpoint: Endpoint): void {
  endpoint.poll()
  leaveWithParent()
}

class PollingClient implements Client {
  readonly #endpoint: Endpoint
  #answered = 0
  #answer = ''

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint
    endpoint.setHandler(ANSWER, () => {
      this.#answered++
    })
  }

  async pingPong(size: number, ms: number, latencies: LatencyHistogram): Promise<void> {
    const endpoint = this.#endpoint
    const payload = Buffer.alloc(size, 1)
    const endMs = performance.now() + ms
    let startMs = performance.now()
    while (startMs < endMs) {
      const before = this.#answered
      while (send(endpoint, payload, true) !== 0) poll(endpoint)
      while (this.#answered === before) poll(endpoint)
      const nowMs = performance.now()
      latencies.recordMs(nowMs - startMs)
      startMs = nowMs
    }
  }

  async stream(size: number, ms: number): Promise<Received> {
    const endpoint = this.#endpoint
    const payload = Buffer.alloc(size, 1)
    const endMs = performance.now() + ms
    do while (send(endpoint, payload, false) !== 0) poll(endpoint)
    while (performance.now() < endMs)
    this.#ask(COUNT)
    return JSON.parse(this.#answer) as Received
  }

  #ask(handler: number): void {
    const endpoint = this.#endpoint
    let isAnswered = false
    endpoint.setHandler(ANSWER, message => {
      isAnswered = true
      this.#answer = message.copy().toString()
    })
    while (endpoint.request(PEER, handler) !== 0) poll(endpoint)
    while (!isAnswered) poll(endpoint)
    endpoint.setHandler(ANSWER, () => {
      this.#answered++
    })
  }

  async close(): Promise<void> {
    this.#ask(STOP)
    await this.#endpoint.close()
  }
}

class WaitingClient implements Client {
  readonly #endpoint: Endpoint
  #handleAnswer: () => void = () => {}

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint
    endpoint.setHandler(ANSWER, () => this.#handleAnswer())
  }

  async pingPong(size: number, ms: number, latencies: LatencyHistogram): Promise<void> {
    const payload = Buffer.alloc(size, 1)
    const endMs = performance.now() + ms
    let startMs = performance.now()
    while (startMs < endMs) {
      const answered = new Promise<void>(resolve => {
        this.#handleAnswer = resolve
      })
      while (send(this.#endpoint, payload, true) !== 0) await this.#endpoint.ready(PEER)
      await answered
      const nowMs = performance.now()
      latencies.recordMs(nowMs - startMs)
      startMs = nowMs
    }
  }

  async stream(size: number, ms: number): Promise<Received> {
    const payload = Buffer.alloc(size, 1)
    const endMs = performance.now() + ms
    do while (send(this.#endpoint, payload, false) !== 0) await this.#endpoint.ready(PEER)
    while (performance.now() < endMs)
    const answer = await this.#endpoint.call(PEER, COUNT)
    return JSON.parse(answer.copy().toString()) as Received
  }

  async close(): Promise<void> {
    await this.#endpoint.close()
  }
}
