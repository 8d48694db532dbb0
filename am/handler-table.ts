import { AmError } from './errors.ts'
import type { Message } from './message.ts'
import { HANDLER_COUNT } from './message-layout.ts'

/** Runs when a message for its index arrives. Must not wait; may reply once if the message is a request. */
export type Handler = (message: Message) => void

/** Index to function. Index 0 is kept for returned messages. */
export class HandlerTable {
  readonly #handlers: (Handler | undefined)[] = new Array(HANDLER_COUNT).fill(undefined)

  set(index: number, handler: Handler | undefined): void {
    if (!Number.isInteger(index) || index < 0 || index >= HANDLER_COUNT) {
      throw new AmError('ERR_AM_ARGUMENT', `handler index ${index} is not within 0..${HANDLER_COUNT - 1}`)
    }
    this.#handlers[index] = handler
  }

  get(index: number): Handler | undefined {
    return this.#handlers[index]
  }
}
