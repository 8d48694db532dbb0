import { queueMicrotask } from '../../nic/real-time.ts'
import { AmError } from '../errors.ts'
import type { HandlerTable } from '../handler-table.ts'
import { Message } from '../message.ts'
import { ReceivedMessage } from '../received-message.ts'

/** Receives messages. It retains each that it handles later than in `handleMessage`. */
export interface MessageSink {
  handleMessage(message: ReceivedMessage): void
  /** No message will come any more: the endpoint is closed. */
  handleEnd(): void
}

/** Ends all streams of an endpoint. */
export function endSources(handlers: HandlerTable): void {
  for (const source of sources.get(handlers)?.values() ?? []) source.end()
}

const sources = new WeakMap<HandlerTable, Map<number, MessageSource>>()

/** A handler that copies messages and passes them, outside of the handler, to every sink that has joined. */
export class MessageSource {
  readonly #handlers: HandlerTable
  readonly #index: number
  readonly #sinks = new Set<MessageSink>()
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

  join(sink: MessageSink): void {
    if (this.#isOver) return sink.handleEnd()
    // Checked on every join: the program may have set or removed the handler in between.
    const handler = this.#handlers.get(this.#index)
    if (handler !== undefined && handler !== this.#handle) {
      throw new AmError('ERR_AM_HANDLER_TAKEN', `handler ${this.#index} is set already`)
    }
    this.#handlers.set(this.#index, this.#handle)
    this.#sinks.add(sink)
  }

  leave(sink: MessageSink): void {
    this.#sinks.delete(sink)
    if (this.#sinks.size === 0 && this.#handlers.get(this.#index) === this.#handle) {
      this.#handlers.set(this.#index, undefined)
    }
  }

  end(): void {
    this.#isOver = true
    for (const sink of this.#sinks) sink.handleEnd()
  }

  readonly #handle = (message: Message): void => {
    if (this.#arrived.push(Message.copyOf(message, ReceivedMessage)) === 1) queueMicrotask(this.#deliver)
  }

  readonly #deliver = (): void => {
    for (const message of this.#arrived.splice(0)) {
      message.retain()
      // A copy: sinks may join and leave during the loop.
      for (const sink of [...this.#sinks]) sink.handleMessage(message)
      message.release(false)
    }
  }
}
