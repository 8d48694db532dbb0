import type { Stream } from './stream.ts'
import { STREAMS_MAX } from './stream-layout.ts'

const SLOT_MASK = STREAMS_MAX - 1
const GENERATION_MAX = Math.floor(0x7fffffff / STREAMS_MAX)

/**
 * The streams of a channel by their ids, which are a slot and how often it was given out: positive, and not soon the same.
 *
 * A late message never finds a new stream, not even when an id is given out again. Only an id that the peer was told counts,
 * and it is free when the peer has answered for the last time, and has been told so. To be given out anew it takes
 * `GENERATION_MAX` connections of that slot, each with an answer of the peer. Messages keep their order both ways: with the
 * first of these answers the peer has forgotten the old socket, and what it had said of that has arrived.
 *
 * Not a Map: V8 makes a Map anew each time as many entries have gone as it has room for, and links each old one to the
 * next. The first that grew old keeps all later ones, with the streams that were in them, from being collected young.
 */
export class StreamTable {
  /** Bytes that closed streams have still to send. */
  lingering = 0
  readonly #slots: (Stream | undefined)[] = []
  readonly #generations: number[] = []
  readonly #free: number[] = []
  #size = 0

  get isFull(): boolean {
    return this.#size >= STREAMS_MAX
  }

  get(id: number): Stream | undefined {
    const slot = id & SLOT_MASK
    const stream = slot < this.#slots.length ? this.#slots[slot] : undefined
    return stream?.id === id ? stream : undefined
  }

  /** For a stream that is put here later, or given up; there must be room. */
  takeId(): number {
    const slot = this.#free.pop() ?? this.#addSlot()
    this.#size++
    return (this.#generations[slot] as number) * STREAMS_MAX + slot
  }

  put(stream: Stream): void {
    this.#slots[stream.id & SLOT_MASK] = stream
  }

  /** An id that the peer has not heard of. The next one may be the same. */
  takeBack(id: number): void {
    this.#release(id & SLOT_MASK)
  }

  /** Does nothing if it is not there. */
  delete(stream: Stream): void {
    if (this.get(stream.id) !== stream) return
    const slot = stream.id & SLOT_MASK
    const generation = this.#generations[slot] as number
    this.#generations[slot] = generation === GENERATION_MAX ? 1 : generation + 1
    this.#release(slot)
  }

  #release(slot: number): void {
    this.#slots[slot] = undefined
    this.#free.push(slot)
    this.#size--
  }

  #addSlot(): number {
    this.#slots.push(undefined)
    return this.#generations.push(1) - 1
  }

  all(): Stream[] {
    return this.#slots.filter(stream => stream !== undefined)
  }
}
