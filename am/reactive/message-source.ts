import { queueMicrotask } from '../../nic/real-time.ts'
import { AmError } from '../errors.ts'
import type { HandlerTable } from '../handler-table.ts'
import type { Message } from '../message.ts'
import { ReceivedMessage } from '../received-message.ts'

/** Receives messages. It retains each that it handles later than in `take`. */
export interface MessageTaker {
  take(message: ReceivedMessage): void
  /** No message will come any more: the endpoint is closed. */
  end(): void
}

/** Ends all streams of an endpoint. */
export function endSources(handlers: HandlerTable): void {
  for (const source of sources.get(handlers)?.values() ?? []) source.end()
}

const sources = new WeakMap<HandlerTable, Map<number, MessageSource>>()

/** A handler that copies messages and passes them, outside of the handler, to every taker that has joined. */
export class MessageSource {
  readonly #handlers: HandlerTable
  readonly #index: number
  readonly #takers = new Set<MessageTaker>()
  readonly #arrived: ReceivedMessage[] = []
  #isOver = false

  static of(handlers: HandlerTable, index: number): MessageSource {
    const table = sources.get(handlers) ?? new Map<number, MessageSource>()
    const source = table.get(index) ?? new MessageSource(handlers, index)
    table.set(index, source)
    sources.set(handlers, table)
    return source
  }

  private constructor(handlers: HandlerTable, index: number) {
    this.#handlers = handlers
    this.#index = index
  }

  join(taker: MessageTaker): void {
    if (this.#isOver) return taker.end()
    // Checked on every join: the program may have set or removed the handler in between.
    const handler = this.#handlers.get(this.#index)
    if (handler !== undefined && handler !== this.#handle) {
      throw new AmError('ERR_AM_HANDLER_TAKEN', `handler ${this.#index} is set already`)
    }
    this.#handlers.set(this.#index, this.#handle)
    this.#takers.add(taker)
  }

  leave(taker: MessageTaker): void {
    this.#takers.delete(taker)
    if (this.#takers.size === 0 && this.#handlers.get(this.#index) === this.#handle) {
      this.#handlers.set(this.#index, undefined)
    }
  }

  end(): void {
    this.#isOver = true
    for (const taker of this.#takers) taker.end()
  }

  readonly #handle = (message: Message): void => {
    if (this.#arrived.push(ReceivedMessage.of(message)) === 1) queueMicrotask(this.#handOn)
  }

  readonly #handOn = (): void => {
    for (const message of this.#arrived.splice(0)) {
      message.retain()
      // A copy: takers may join and leave during the loop.
      for (const taker of [...this.#takers]) taker.take(message)
      message.release(false)
    }
  }
}
