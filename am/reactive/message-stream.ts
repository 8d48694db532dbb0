/**
 * Messages as an RxJS Observable and as an async iterable. RxJS has no back-pressure; credits are ours: the credit of a
 * request goes back when it has been handled, so that a slow subscriber slows its senders, and at most their credits are
 * in this process. Nothing is dropped. What "handled" means:
 *
 * - async iterable: the loop asks for the next message, or ends;
 * - a subscriber, or synchronous operators (`map`, `filter`, `tap`): the call has returned;
 * - operators that project to an inner observable (`concatMap`, `mergeMap(n)`, `switchMap`, `exhaustMap`): the inner
 *   observable of that message has ended, also if the message waited in the operator before.
 */
import { createRequire } from 'node:module'
import type { Observable, Subscriber } from 'rxjs'
import { rangeError } from '../errors.ts'
import type { HandlerTable } from '../handler-table.ts'
import { HANDLER_COUNT } from '../message-layout.ts'
import type { ReceivedMessage } from '../received-message.ts'
import { MessageSource, type MessageTaker } from './message-source.ts'

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
    return () => {
      source.leave(flow)
      flow.finishAll()
    }
  })
  return Object.assign(observable, { [Symbol.asyncIterator]: () => new MessageIterator(source) })
}

interface Teardowns {
  add(teardown: unknown): void
}

/**
 * Finds out when a subscriber has done with a message. Operators that project a value subscribe to an inner observable
 * with a subscriber of their own, which they add to the one downstream of them: that is the moment at which a message
 * is taken up, and the end of that inner subscriber is the moment at which it is done. While one is running, a message
 * that was emitted without being taken up waits inside the operator; when none is, the emission was all there was.
 */
class SubscriberFlow implements MessageTaker {
  readonly #subscriber: Subscriber<ReceivedMessage>
  /** Emitted, and not taken up by an inner observable yet: first in, first out, as operators do. */
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(subscriber: Subscriber<ReceivedMessage>) {
    this.#subscriber = subscriber
    // Everything downstream is there already when a source is subscribed to.
    for (let next = downstreamOf(subscriber); next !== undefined; next = downstreamOf(next)) {
      const add = next.add
      next.add = (teardown: unknown) => {
        add.call(next, teardown)
        if (isSubscriber(teardown)) this.#takeUp(teardown)
      }
    }
  }

  take(message: ReceivedMessage, done: () => void): void {
    this.#waiting.push(done)
    this.#subscriber.next(message)
    this.#settle()
  }

  end(): void {
    this.#subscriber.complete()
  }

  finishAll(): void {
    for (const done of this.#waiting.splice(0)) done()
  }

  #takeUp(inner: Teardowns): void {
    const done = this.#waiting.shift()
    this.#running++
    inner.add(() => {
      this.#running--
      done?.()
      // The operator takes up the next message in this same turn, if it has one.
      queueMicrotask(() => this.#settle())
    })
  }

  #settle(): void {
    if (this.#running === 0) this.finishAll()
  }
}

/** `destination` is protected in RxJS 7; without it every emission counts as handled when the call returns. */
function downstreamOf(subscriber: unknown): Teardowns | undefined {
  const { destination } = subscriber as { destination?: unknown }
  return isSubscriber(destination) ? destination : undefined
}

function isSubscriber(value: unknown): value is Teardowns {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as { add?: unknown }).add === 'function' &&
    typeof (value as { next?: unknown }).next === 'function'
  )
}

class MessageIterator
  implements AsyncIterator<ReceivedMessage>, AsyncIterable<ReceivedMessage>, MessageTaker
{
  readonly #source: MessageSource
  readonly #arrived: { message: ReceivedMessage; done: () => void }[] = []
  readonly #asked: ((result: IteratorResult<ReceivedMessage>) => void)[] = []
  /** Of the message that the loop has now. */
  #finish: () => void = () => {}
  #isOver = false

  constructor(source: MessageSource) {
    this.#source = source
    source.join(this)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  take(message: ReceivedMessage, done: () => void): void {
    const asked = this.#asked.shift()
    if (asked === undefined) {
      this.#arrived.push({ message, done })
    } else {
      this.#finish = done
      asked({ value: message, done: false })
    }
  }

  async next(): Promise<IteratorResult<ReceivedMessage>> {
    this.#finish()
    this.#finish = () => {}
    if (this.#isOver) return { value: undefined, done: true }
    const arrived = this.#arrived.shift()
    if (arrived === undefined) return await new Promise(resolve => this.#asked.push(resolve))
    this.#finish = arrived.done
    return { value: arrived.message, done: false }
  }

  async return(): Promise<IteratorResult<ReceivedMessage>> {
    this.#finish()
    this.end()
    return { value: undefined, done: true }
  }

  end(): void {
    this.#isOver = true
    this.#source.leave(this)
    for (const { done } of this.#arrived.splice(0)) done()
    for (const asked of this.#asked.splice(0)) asked({ value: undefined, done: true })
  }
}
