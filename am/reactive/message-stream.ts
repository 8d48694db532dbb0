/**
 * Messages as an RxJS Observable and as an async iterable. RxJS has no back-pressure; credits provide it. The
 * credit of a request goes back when the request has been handled, so that a slow subscriber slows its senders. At
 * most the requests of their credits are in this process. A message has been handled
 *
 * - by a subscriber, when its function and all synchronous operators before it have returned;
 * - by `handleEach` (handle-each.ts), when the projection of the message has ended;
 * - by an async iterable, when the loop asks for the next message, or ends.
 *
 * Nothing is dropped. Requests that no subscriber has seen when the last one leaves return to their senders.
 */
import type { Observable, Subscriber } from 'rxjs'
import { rangeError } from '../errors.ts'
import type { HandlerTable } from '../handler-table.ts'
import { HANDLER_COUNT } from '../message-layout.ts'
import type { ReceivedMessage } from '../received-message.ts'
import { type MessageSink, MessageSource } from './message-source.ts'
import { loadRxjs } from './rxjs.ts'

export type MessageStream = Observable<ReceivedMessage> & AsyncIterable<ReceivedMessage>

export function messageStream(handlers: HandlerTable, index: number): MessageStream {
  if (!Number.isInteger(index) || index < 0 || index >= HANDLER_COUNT) {
    throw rangeError(`handler index ${String(index)} is not within 0..${HANDLER_COUNT - 1}`)
  }
  const { Observable } = loadRxjs()
  const source = MessageSource.of(handlers, index)
  const observable = new Observable<ReceivedMessage>(subscriber => {
    const sink = new SubscriberSink(subscriber)
    source.join(sink)
    return () => source.leave(sink)
  })
  return Object.assign(observable, { [Symbol.asyncIterator]: () => new MessageIterator(source) })
}

class SubscriberSink implements MessageSink {
  readonly #subscriber: Subscriber<ReceivedMessage>

  constructor(subscriber: Subscriber<ReceivedMessage>) {
    this.#subscriber = subscriber
  }

  handleMessage(message: ReceivedMessage): void {
    const subscriber = this.#subscriber
    if (subscriber.closed) return
    const retentionCount = message.retentionCount()
    subscriber.next(message)
    if (message.retentionCount() !== retentionCount) return // an operator releases it
    message.retain()
    message.release(true)
  }

  handleEnd(): void {
    this.#subscriber.complete()
  }
}

class MessageIterator implements AsyncIterator<ReceivedMessage>, AsyncIterable<ReceivedMessage>, MessageSink {
  readonly #source: MessageSource
  readonly #arrived: ReceivedMessage[] = []
  readonly #asked: ((result: IteratorResult<ReceivedMessage>) => void)[] = []
  /** The message that the loop has now. */
  #current: ReceivedMessage | undefined
  #isOver = false

  constructor(source: MessageSource) {
    this.#source = source
    source.join(this)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  handleMessage(message: ReceivedMessage): void {
    if (this.#isOver) return
    message.retain()
    const asked = this.#asked.shift()
    if (asked === undefined) {
      this.#arrived.push(message)
      return
    }
    // A program that has asked for further messages does not wait for the end of this one.
    if (this.#asked.length > 0) message.release(true)
    else this.#current = message
    asked({ value: message, done: false })
  }

  async next(): Promise<IteratorResult<ReceivedMessage>> {
    this.#finishCurrent()
    if (this.#isOver) return { value: undefined, done: true }
    this.#current = this.#arrived.shift()
    if (this.#current === undefined) return await new Promise(resolve => this.#asked.push(resolve))
    return { value: this.#current, done: false }
  }

  async return(): Promise<IteratorResult<ReceivedMessage>> {
    this.#finishCurrent()
    this.handleEnd()
    return { value: undefined, done: true }
  }

  handleEnd(): void {
    this.#isOver = true
    this.#source.leave(this)
    for (const message of this.#arrived.splice(0)) message.release(false)
    for (const asked of this.#asked.splice(0)) asked({ value: undefined, done: true })
  }

  #finishCurrent(): void {
    this.#current?.release(true)
    this.#current = undefined
  }
}
