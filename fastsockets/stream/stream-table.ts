import type { Stream } from './stream.ts'
import { STREAMS_MAX } from './stream-layout.ts'
import type { UnreadShare } from './unread-budget.ts'

const SLOT_MASK = STREAMS_MAX - 1
const GENERATION_MAX = Math.floor(0x7fffffff / STREAMS_MAX)

/**
 * The streams of a channel by number. Streams that this side has asked for have our numbers, which are positive: a
 * slot, and how often the slot was used. Streams that the peer has asked for have the peer's numbers, negated.
 *
 * A late message never reaches a new stream. A number is free when the peer has sent its last answer for it. It is used
 * again only after `GENERATION_MAX` connections of its slot, each with an answer of the peer. As messages keep their
 * order both ways, the first of these answers proves that the peer has forgotten the old socket, and that its messages
 * have arrived.
 *
 * Not a Map: V8 replaces the table of a Map after as many removals as it has room for, and links each old table to the
 * next. The first one that grew old keeps all later ones, and their streams, from being collected young.
 */
export class StreamTable {
  private readonly ours: (Stream | undefined)[] = []
  private readonly generations: number[] = []
  private readonly free: number[] = []
  private readonly theirs: (Stream | undefined)[] = []
  /** By slot: the last number that was refused. Its client may have sent data before it knew. */
  private readonly refused: number[] = []
  private size = 0
  private readonly channel: { readonly unread: UnreadShare }

  constructor(channel: { readonly unread: UnreadShare }) {
    this.channel = channel
  }

  get isFull(): boolean {
    return this.size >= STREAMS_MAX
  }

  /** True if under half full, so that LIMIT cannot be reached yet. */
  get hasPlenty(): boolean {
    return this.size < STREAMS_MAX / 2
  }

  get(id: number): Stream | undefined {
    const slots = id < 0 ? this.theirs : this.ours
    const slot = (id < 0 ? -id : id) & SLOT_MASK
    const stream = slot < slots.length ? slots[slot] : undefined
    return stream?.id === id ? stream : undefined
  }

  /** A number for a stream that is put here at once; there must be room. */
  allocateId(): number {
    const slot = this.free.pop() ?? this.addSlot()
    return (this.generations[slot] as number) * STREAMS_MAX + slot
  }

  /** True if the place of this number, which the peer chose, is free. */
  hasPlaceFor(id: number): boolean {
    return this.theirs[slotOf(id)] === undefined
  }

  /** There must be room, and the place of the number must be free. */
  put(stream: Stream): void {
    const slot = slotOf(stream.id)
    if (stream.id > 0) this.ours[slot] = stream
    else {
      // Without holes: V8 has a slower kind of array for many holes.
      while (this.theirs.length <= slot) this.theirs.push(undefined)
      this.theirs[slot] = stream
    }
    this.size++
    this.channel.unread.noteGranted(stream.window)
  }

  /** The peer's CONNECT with this number was refused. */
  noteRefused(id: number): void {
    const slot = slotOf(id)
    while (this.refused.length <= slot) this.refused.push(0)
    this.refused[slot] = id
  }

  wasRefused(id: number): boolean {
    return id < 0 && this.refused[slotOf(id)] === id
  }

  /** Does nothing for a stream that is not here. */
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
