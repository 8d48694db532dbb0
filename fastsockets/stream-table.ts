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

  giveBack(id: number): void {
    const slot = id & SLOT_MASK
    const generation = this.#generations[slot] as number
    this.#generations[slot] = generation === GENERATION_MAX ? 1 : generation + 1
    this.#slots[slot] = undefined
    this.#free.push(slot)
    this.#size--
  }

  /** Does nothing if it is not there. */
  delete(stream: Stream): void {
    if (this.get(stream.id) === stream) this.giveBack(stream.id)
  }

  #addSlot(): number {
    this.#slots.push(undefined)
    return this.#generations.push(1) - 1
  }

  all(): Stream[] {
    return this.#slots.filter(stream => stream !== undefined)
  }
}
