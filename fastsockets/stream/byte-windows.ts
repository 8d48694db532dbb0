/**
 * The arithmetic of one direction of a stream, at its two ends. Sequence numbers count bytes, are int32 and wrap: only
 * their differences mean anything.
 */
import { ablation } from '../../nic/index.ts'
import { CONSUMED_DUE, SHRUNK_WINDOW } from './stream-layout.ts'
import { isOverBudget } from './unread-budget.ts'

const REPORTED_FROM = ablation('no-delayed-acks') === undefined ? CONSUMED_DUE : 1

/** At the sender: what is out, and how much more the peer's receive buffer takes. */
export class SendWindow {
  /** Sequence of the next byte to send. */
  sequence = 0
  /** Bytes from `sequence` on that the peer may fetch by itself, and so may have taken before we hear of it. */
  offered = 0
  /** The first byte that may not be sent yet, and the first that the peer's program has not taken. */
  #limit = 0
  #consumed = 0

  open(size: number): void {
    this.#limit = size
  }

  get credit(): number {
    return (this.#limit - this.sequence) | 0
  }

  advance(length: number): void {
    this.sequence = (this.sequence + length) | 0
  }

  /** The peer says how much its program has taken; returns how much that is more than before, or -1 if it cannot be. */
  takeConsumed(consumed: number): number {
    const progress = (consumed - this.#consumed) | 0
    if (progress < 0 || progress > ((this.sequence + this.offered - this.#consumed) | 0)) return -1
    this.#consumed = consumed
    this.#limit = (this.#limit + progress) | 0
    return progress
  }
}

/** At the receiver: what has come, what the program has taken of it, and what the peer knows of that. */
export class ReceiveWindow {
  /** Sequence of the next byte that is due. */
  sequence = 0
  consumed = 0
  /** What the peer was granted at first. */
  readonly size: number
  /** Consumed bytes of which the peer is not told, so that it has less under way. */
  #withheld = 0
  #reportedLast = 0

  constructor(size: number) {
    this.size = size
  }

  /** What the peer is told is consumed. */
  get reported(): number {
    return (this.consumed - this.#withheld) | 0
  }

  /** Whether `length` bytes more are more than the sender may have under way. */
  isOverrunBy(length: number): boolean {
    return ((this.sequence + length - this.reported) | 0) > this.size
  }

  advance(length: number): void {
    this.sequence = (this.sequence + length) | 0
  }

  consume(length: number): void {
    this.consumed = (this.consumed + length) | 0
    this.#withheld = isOverBudget() ? Math.min(this.#withheld + length, this.size - SHRUNK_WINDOW) : 0
  }

  /** At most half of the window is owed: then a sender does not run dry. */
  get isReportDue(): boolean {
    const due = Math.min(REPORTED_FROM, (this.size - this.#withheld) >> 1)
    return ((this.reported - this.#reportedLast) | 0) >= due
  }

  noteReported(): void {
    this.#reportedLast = this.reported
  }
}
