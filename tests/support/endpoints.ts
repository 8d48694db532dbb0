/** What tests do with endpoints, and keep of their messages. */
import { type Endpoint, type Message, OK } from '../../am/index.ts'
import { until } from './until.ts'

/** What a message was, for when its handler has returned. */
export interface Arrival {
  readonly handler: number
  readonly isRequest: boolean
  readonly source: string
  readonly destination: number | undefined
  readonly words: readonly number[]
  readonly payload: Buffer
  readonly offset: number
  readonly reason: string | undefined
}

export function arrivalOf(message: Message): Arrival {
  return {
    handler: message.handler,
    isRequest: message.isRequest,
    source: message.source,
    destination: message.destination,
    words: Array.from({ length: 8 }, (_, i) => message.word(i)),
    payload: message.copy(),
    offset: message.offset,
    reason: message.reason,
  }
}

/** Keeps what arrives for some handlers of an endpoint. */
export function keepArrivals(endpoint: Endpoint, ...handlers: number[]): Arrival[] {
  const arrivals: Arrival[] = []
  for (const handler of handlers) endpoint.setHandler(handler, message => arrivals.push(arrivalOf(message)))
  return arrivals
}

/** Sends as soon as it is not refused any more. */
export async function deliver(endpoint: Endpoint, destination: number, send: () => number): Promise<void> {
  while (send() !== OK) await endpoint.ready(destination)
}

/** Polls endpoints with manual progress, without a pause, until the condition holds. */
export async function pollUntil(
  what: string,
  endpoints: readonly Endpoint[],
  holds: () => boolean,
): Promise<void> {
  const poll = (): boolean => {
    for (const endpoint of endpoints) endpoint.poll()
    return holds()
  }
  await until(what, poll, Number.POSITIVE_INFINITY)
}

/** The same words, with zeros where none were sent. */
export function eightWords(...words: number[]): number[] {
  return Array.from({ length: 8 }, (_, i) => words[i] ?? 0)
}

/** What `promise` rejects with. Listens at once; `t.rejects` waits for the assertions before it. */
export async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    return { resolved: await promise }
  } catch (error) {
    return error
  }
}
