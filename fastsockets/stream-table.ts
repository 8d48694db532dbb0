import type { Stream } from './stream.ts'
import { STREAMS_MAX } from './stream-layout.ts'

const SLOT_MASK = STREAMS_MAX - 1
const GENERATION_MAX = Math.floor(0x7fffffff / STREAMS_MAX)

/**
 * The streams of a channel by their ids, which are a slot and how often it was given out: positive, and not soon the same.
 *
 * Not a Map: V8 makes a Map anew each time as many entries have gone as it has room for, and links each old one to the
 * next. The first that grew old keeps all later ones, with the streams that were in them, from being collected young.
 */
export class StreamTable {
  readonly #slots: (Stream | undefined)[] = []
  readonly #generations: number[] = []
  readonly #free: number[] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  get isFull(): boolean {
    return this.#size >= STREAMS_MAX
  }

  get(id: number): Stream | undefined {
    const slot = id & SLOT_MASK
    const stream = slot < this.#slots.length ? this.#slots[slot] : undefined
    return stream?.id === id ? stream : undefined
  }

  /** For a stream that may be added, or not; there must be room. */
  nextId(): number {
    const slot = this.#free.at(-1) ?? this.#slots.length
    const generation = this.#generations[slot] ?? 1
    return generation * STREAMS_MAX + slot
  }

  /** Its id is the one that `nextId` gave last. */
  add(stream: Stream): void {
    const slot = stream.id & SLOT_MASK
    if (slot === this.#free.at(-1)) this.#free.pop()
    else this.#generations.push(1)
    this.#slots[slot] = stream
    this.#size++
  }

  delete(stream: Stream): void {
    if (this.get(stream.id) !== stream) return
    const slot = stream.id & SLOT_MASK
    const generation = this.#generations[slot] as number
    this.#generations[slot] = generation === GENERATION_MAX ? 1 : generation + 1
    this.#slots[slot] = undefined
    this.#free.push(slot)
    this.#size--
  }

  all(): Stream[] {
    return this.#slots.filter(stream => stream !== undefined)
  }
}
