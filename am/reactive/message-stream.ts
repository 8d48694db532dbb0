/**
 * Messages as an RxJS Observable and as an async iterable. RxJS has no back-pressure; credits provide it. The
 * credit of a request goes back when the request has been handled, so that a slow subscriber slows its senders. At
 * most the requests of their credits are in this process. "Handled" means (uptake.ts detects it):
 *
 * - async iterable: the loop asks for the next message, or ends;
 * - a subscriber, or synchronous operators (`map`, `filter`, `tap`): the call has returned;
 * - operators that project to an inner observable (`concatMap`, `mergeMap(n)`, `switchMap`, `exhaustMap`): the inner
 *   observable of that message has ended, also if the message waited in the operator before. With several of them in
 *   a row it is the first that counts.
 *
 * Nothing is dropped. Requests that no subscriber has seen when the last one leaves return to their senders.
 */
import { createRequire } from 'node:module'
import type { Observable, Subscriber } from 'rxjs'
import { rangeError } from '../errors.ts'
import type { HandlerTable } from '../handler-table.ts'
import { HANDLER_COUNT } from '../message-layout.ts'
import type { ReceivedMessage } from '../received-message.ts'
import { MessageSource, type MessageTaker } from './message-source.ts'
import { emit, type Finish, type Uptake, uptakesOf } from './uptake.ts'

export type MessageStream = Observable<ReceivedMessage> & AsyncIterable<ReceivedMessage>

/** RxJS is loaded by the first stream: most users of sockets never make one. */
let rxjs: typeof import('rxjs') | undefined

export function messageStream(handlers: HandlerTable, index: number): MessageStream {
  if (!Number.isInteger(index) || index < 0 || index >= HANDLER_COUNT) {
    throw rangeError(`handler index ${String(index)} is not within 0..${HANDLER_COUNT - 1}`)
  }
  rxjs ??= createRequire(import.meta.url)('rxjs') as typeof import('rxjs')
  const source = MessageSource.of(handlers, index)
  const observable = new rxjs.Observable<ReceivedMessage>(subscriber => {
    const flow = new SubscriberFlow(subscriber)
    source.join(flow)
    return () => source.leave(flow)
  })
  return Object.assign(observable, { [Symbol.asyncIterator]: () => new MessageIterator(source) })
}

class SubscriberFlow implements MessageTaker {
  readonly #subscriber: Subscriber<ReceivedMessage>
  readonly #uptakes: readonly Uptake[]

  constructor(subscriber: Subscriber<ReceivedMessage>) {
    this.#subscriber = subscriber
    // Everything downstream is connected before a source is subscribed to.
    this.#uptakes = uptakesOf(subscriber)
  }

  take(message: ReceivedMessage, finish: Finish): void {
    const subscriber = this.#subscriber
    if (subscriber.closed) finish(false)
    else emit(subscriber, message, this.#uptakes, finish)
  }

  end(): void {
    this.#subscriber.complete()
  }
}

class MessageIterator
  implements AsyncIterator<ReceivedMessage>, AsyncIterable<ReceivedMessage>, MessageTaker
{
  readonly #source: MessageSource
  readonly #arrived: { message: ReceivedMessage; finish: Finish }[] = []
  readonly #asked: ((result: IteratorResult<ReceivedMessage>) => void)[] = []
  /** Finishes the message that the loop has now. */
  #finish: Finish = () => {}
  #isOver = false

  constructor(source: MessageSource) {
    this.#source = source
    source.join(this)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  take(message: ReceivedMessage, finish: Finish): void {
    if (this.#isOver) return finish(false)
    const asked = this.#asked.shift()
    if (asked === undefined) {
      this.#arrived.push({ message, finish })
    } else {
      // The program has already asked for the next message.
      if (this.#asked.length > 0) finish(true)
      else this.#finish = finish
      asked({ value: message, done: false })
    }
  }

  async next(): Promise<IteratorResult<ReceivedMessage>> {
    this.#finish(true)
    this.#finish = () => {}
    if (this.#isOver) return { value: undefined, done: true }
    const arrived = this.#arrived.shift()
    if (arrived === undefined) return await new Promise(resolve => this.#asked.push(resolve))
    this.#finish = arrived.finish
    return { value: arrived.message, done: false }
  }

  async return(): Promise<IteratorResult<ReceivedMessage>> {
    this.#finish(true)
    this.#finish = () => {}
    this.end()
    return { value: undefined, done: true }
  }

  end(): void {
    this.#isOver = true
    this.#source.leave(this)
    for (const { finish } of this.#arrived.splice(0)) finish(false)
    for (const asked of this.#asked.splice(0)) asked({ value: undefined, done: true })
  }
}
