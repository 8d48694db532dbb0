import type { Stream } from './stream.ts'
import { STREAMS_MAX } from './stream-layout.ts'
import type { UnreadShare } from './unread-budget.ts'

const SLOT_MASK = STREAMS_MAX - 1
const GENERATION_MAX = Math.floor(0x7fffffff / STREAMS_MAX)

/**
 * The streams of a channel by their numbers. Those that this side has asked for have a number of ours: a slot and how often
 * that was given out, positive, and not soon the same. Those that the peer has asked for have the peer's, negated.
 *
 * A late message never finds a new stream, not even when a number is given out again: it is free when the peer has answered for
 * the last time, and has been told so. To be given out anew it takes `GENERATION_MAX` connections of that slot, each with an
 * answer of the peer. Messages keep their order both ways: with the first of these answers the peer has forgotten the old
 * socket, and what it had said of that has arrived.
 *
 * Not a Map: V8 makes a Map anew each time as many entries have gone as it has room for, and links each old one to the
 * next. The first that grew old keeps all later ones, with the streams that were in them, from being collected young.
 */
export class StreamTable {
  private readonly ours: (Stream | undefined)[] = []
  private readonly generations: number[] = []
  private readonly free: number[] = []
  private readonly theirs: (Stream | undefined)[] = []
  /** By slot: the number that was refused last. Its client may have sent something before it heard of that. */
  private readonly refused: number[] = []
  private size = 0
  private readonly channel: { readonly unread: UnreadShare }

  constructor(channel: { readonly unread: UnreadShare }) {
    this.channel = channel
  }

  get isFull(): boolean {
    return this.size >= STREAMS_MAX
  }

  /** Whether it will be some time until it is full, whatever the peer asks for meanwhile. */
  get hasPlenty(): boolean {
    return this.size < STREAMS_MAX / 2
  }

  get(id: number): Stream | undefined {
    const slots = id < 0 ? this.theirs : this.ours
    const slot = (id < 0 ? -id : id) & SLOT_MASK
    const stream = slot < slots.length ? slots[slot] : undefined
    return stream?.id === id ? stream : undefined
  }

  /** For a stream that is put here at once; there must be room. */
  allocateId(): number {
    const slot = this.free.pop() ?? this.addSlot()
    return (this.generations[slot] as number) * STREAMS_MAX + slot
  }

  /** Whether the place of this number, which the peer chose, is free. */
  hasPlaceFor(id: number): boolean {
    return this.theirs[slotOf(id)] === undefined
  }

  /** There must be room, and the place of that number must be free. */
  put(stream: Stream): void {
    const slot = slotOf(stream.id)
    if (stream.id > 0) this.ours[slot] = stream
    else {
      // No holes: an array with many is another, slower kind of array.
      while (this.theirs.length <= slot) this.theirs.push(undefined)
      this.theirs[slot] = stream
    }
    this.size++
    this.channel.unread.noteGranted(stream.window)
  }

  /** The peer asked for it in vain. */
  noteRefused(id: number): void {
    const slot = slotOf(id)
    while (this.refused.length <= slot) this.refused.push(0)
    this.refused[slot] = id
  }

  wasRefused(id: number): boolean {
    return id < 0 && this.refused[slotOf(id)] === id
  }

  /** Does nothing if it is not there. */
  delete(stream: Stream): void {
    if (this.get(stream.id) !== stream) return
    const slot = slotOf(stream.id)
    this.size--
    this.channel.unread.noteGranted(-stream.window)
    if (stream.id < 0) {
      this.theirs[slot] = undefined
      return
    }
    const generation = this.generations[slot] as number
    this.generations[slot] = generation === GENERATION_MAX ? 1 : generation + 1
    this.ours[slot] = undefined
    this.free.push(slot)
  }

  private addSlot(): number {
    this.ours.push(undefined)
    return this.generations.push(1) - 1
  }

  all(): Stream[] {
    return [...this.ours, ...this.theirs].filter(stream => stream !== undefined)
  }
}

function slotOf(id: number): number {
  return (id < 0 ? -id : id) & SLOT_MASK
}
