/** Limits the memory of answers that their callers have not read yet, by owner. */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Refusal } from '../problem.ts'

/** At this many characters of unread answers the owner gets no further listings. */
const UNREAD_LISTED_MAX = 16 * 1024 * 1024
/** The same limit for all other operations. */
const UNREAD_MAX = 64 * 1024 * 1024
/** Shorter answers are not counted: they cost no more than their connection. */
const COUNTED_MIN = 1024
const RETRY_HINT_MS = 100

interface Unread {
  readonly owner: string
  readonly length: number
}

export class UnreadAnswers {
  readonly #lengthByOwner = new Map<string, number>()
  /** By connection: an answer that is queued behind another one gets no 'close' when the connection ends. */
  readonly #unread = new WeakMap<Socket, Map<ServerResponse, Unread>>()
  readonly #handleClose: (this: ServerResponse) => void

  constructor() {
    const forget = (response: ServerResponse): void => this.#forget(response)
    // One function for all answers, instead of a closure for each.
    this.#handleClose = function () {
      forget(this)
    }
  }

  /** Throws a refusal if the owner must read its answers first. */
  check(owner: string, isListing: boolean): void {
    const length = this.#lengthByOwner.get(owner)
    if (length === undefined || length < (isListing ? UNREAD_LISTED_MAX : UNREAD_MAX)) return
    const detail = `Answers of ${length} characters have not been read yet.`
    throw new Refusal('rate', detail, { retryAfterMs: RETRY_HINT_MS })
  }

  /** Call before the answer is sent. */
  add(response: ServerResponse, owner: string, { length }: string): void {
    const { socket } = response.req
    if (length < COUNTED_MIN || socket.destroyed) return
    let ofSocket = this.#unread.get(socket)
    if (ofSocket === undefined) {
      const unread = new Map<ServerResponse, Unread>()
      ofSocket = unread
      this.#unread.set(socket, unread)
      socket.once('close', () => {
        for (const response of unread.keys()) this.#forget(response)
      })
    }
    ofSocket.set(response, { owner, length })
    this.#lengthByOwner.set(owner, (this.#lengthByOwner.get(owner) ?? 0) + length)
    response.once('close', this.#handleClose)
  }

  #forget(response: ServerResponse): void {
    const ofSocket = this.#unread.get(response.req.socket)
    const unread = ofSocket?.get(response)
    if (unread === undefined) return
    ofSocket?.delete(response)
    const left = (this.#lengthByOwner.get(unread.owner) ?? 0) - unread.length
    if (left === 0) this.#lengthByOwner.delete(unread.owner)
    else this.#lengthByOwner.set(unread.owner, left)
  }
}
