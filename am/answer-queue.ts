import { copyBytes } from '../nic/index.ts'
import type { AckQueue } from './ack-queue.ts'
import type { FrameWriter } from './frame-writer.ts'
import { headerSize, KIND_BOUNCE } from './message-layout.ts'
import type { Words } from './words.ts'

interface QueuedAnswer {
  readonly kind: number
  readonly slot: number
  readonly handler: number
  readonly words: Words
  readonly payload: Uint8Array | undefined
}

/**
 * Answers are never refused: one that finds no room is copied and waits here, in order. Each holds back the slot
 * of its request, and a bounce is sent before the next request of this side. So the queue never holds more than
 * twice the credits.
 */
export class AnswerQueue {
  private readonly writer: FrameWriter
  private readonly acks: AckQueue
  readonly queued: QueuedAnswer[] = []

  constructor(writer: FrameWriter, acks: AckQueue) {
    this.writer = writer
    this.acks = acks
  }

  /** Sends the answer, or queues a copy and returns false. */
  send(kind: number, slot: number, handler: number, words: Words, payload: Uint8Array | undefined): boolean {
    if (this.queued.length === 0 && this.trySend(kind, slot, handler, words, payload)) return true
    const ownPayload = payload === undefined ? undefined : Uint8Array.from(payload)
    this.queued.push({ kind, slot, handler, words: words.copy(), payload: ownPayload })
    return false
  }

  /** Sends queued answers in order; true if none is left. */
  flush(): boolean {
    for (;;) {
      const answer = this.queued[0]
      if (answer === undefined) return true
      if (!this.trySend(answer.kind, answer.slot, answer.handler, answer.words, answer.payload)) return false
      this.queued.shift()
    }
  }

  /** Bytes that the first queued answer needs, or 0. */
  get roomWanted(): number {
    const answer = this.queued[0]
    return answer === undefined ? 0 : headerSize(answer.words.count, 0) + (answer.payload?.length ?? 0)
  }

  private trySend(
    kind: number,
    slot: number,
    handler: number,
    words: Words,
    payload: Uint8Array | undefined,
  ): boolean {
    const length = payload === undefined ? 0 : payload.length
    const at = this.writer.reserve(kind, handler, slot, words.count, 0, length, words)
    if (at < 0) return false
    if (payload !== undefined) copyBytes(payload, 0, this.writer.end.sendBytes, at, length)
    if (kind !== KIND_BOUNCE) this.acks.answer(slot)
    this.writer.commit(length)
    return true
  }
}
