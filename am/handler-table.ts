import type { ChannelOwner } from './channel-owner.ts'
import { AmError, rangeError, typeError } from './errors.ts'
import type { Message } from './message.ts'
import { HANDLER_COUNT } from './message-layout.ts'

/** Runs when a message for its index arrives. Must not wait; may reply once if the message is a request. */
export type Handler = (message: Message) => void

/**
 * Runs when a one-way message for its index arrives, as a method of the channel's owner. `words` are the channel's own copy; the
 * payload lies in the interface's memory, where the peer may still write. Both are valid only during the call.
 */
export type OneWayHandler = (
  this: ChannelOwner,
  words: Int32Array,
  wordCount: number,
  bytes: Uint8Array,
  offset: number,
  length: number,
) => void

/** Handlers by index. Index 0 is reserved for returned messages. */
export class HandlerTable {
  /** Handlers run so far. */
  runs = 0
  /** Handlers of one-way messages. */
  readonly oneWay: (OneWayHandler | undefined)[] = new Array(HANDLER_COUNT).fill(undefined)
  readonly #handlers: (Handler | undefined)[] = new Array(HANDLER_COUNT).fill(undefined)
  /** The part of this package that has an index to itself, by name. */
  readonly #owners = new Map<number, string>()

  /** Sets a handler for good. False, and nothing is set, if the index has a handler already. */
  reserve(index: number, owner: string, handler: Handler): boolean {
    if (this.#handlers[index] !== undefined) return false
    this.#handlers[index] = handler
    this.#owners.set(index, owner)
    return true
  }

  set(index: number, handler: Handler | undefined): void {
    if (!Number.isInteger(index) || index < 0 || index >= HANDLER_COUNT) {
      throw rangeError(`handler index ${String(index)} is not within 0..${HANDLER_COUNT - 1}`)
    }
    if (handler !== undefined && typeof handler !== 'function') {
      throw typeError(`handler ${index} must be a function, not ${typeof handler}`)
    }
    const owner = this.#owners.get(index)
    if (owner !== undefined) {
      throw new AmError(
        'ERR_AM_HANDLER_TAKEN',
        `${owner} uses handler ${index} of this endpoint; set another one`,
      )
    }
    this.#handlers[index] = handler
  }

  setOneWay<Owner extends ChannelOwner>(
    index: number,
    handler: (this: Owner, ...message: Parameters<OneWayHandler>) => void,
  ): void {
    this.oneWay[index] = handler as OneWayHandler
  }

  /**
   * The handler that a peer may call by this index; undefined if there is none. Peers may not call index 0, the handler of
   * returned messages.
   */
  callable(index: number): Handler | undefined {
    return index === 0 ? undefined : this.#handlers[index]
  }

  get(index: number): Handler | undefined {
    return this.#handlers[index]
  }
}
