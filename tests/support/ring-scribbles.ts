/** A peer that writes anything, at any time, into the ring that it shares with us. */
import type { FrameSink } from '../../nic/index.ts'
import { frameMaxOf, HEAD_WORD, RING_SIZE_MIN, SKIP, stampOf } from '../../nic/ring/ring-layout.ts'
import type { Random } from './random.ts'
import { RingMemory } from './ring-memory.ts'

const SIZE = RING_SIZE_MIN
export const FRAME_MAX = frameMaxOf(SIZE)

/** Checks where frames lie, and scribbles on while it is being called. */
export class SuspiciousSink implements FrameSink {
  readonly complaints: string[] = []
  calls = 0
  readonly #ring: RingMemory
  readonly #random: Random

  constructor(ring: RingMemory, random: Random) {
    this.#ring = ring
    this.#random = random
  }

  handleFrame(bytes: Uint8Array, offset: number, length: number): void {
    this.calls++
    if (
      offset % 8 !== 0 ||
      offset < 8 ||
      length < 0 ||
      length > FRAME_MAX ||
      offset + length > bytes.length
    ) {
      this.complaints.push(`a frame of ${length} bytes at ${offset}`)
    }
    if (this.#random.chance(0.2)) scribble(this.#ring, this.#random)
  }
}

/** A ring somewhere in its life, with frames in it. */
export function ringInUse(random: Random): RingMemory {
  const ring = new RingMemory()
  const sink: FrameSink = { handleFrame: () => {} }
  for (let i = random.within(0, 100); i > 0; i--) {
    ring.send(random.within(0, random.chance(0.2) ? FRAME_MAX : 200))
    if (random.chance(0.5)) ring.consumer.poll(sink, 2)
  }
  return ring
}

/** One word of the ring becomes something that is likely to hurt. */
export function scribble(ring: RingMemory, random: Random): void {
  const head = ring.control[HEAD_WORD] as number
  const near = 8 * random.within(-20, 20)
  const values = [
    head + near,
    stampOf(head + near),
    stampOf(head + SIZE + near),
    random.word(),
    random.word() & ~7,
    0,
    1,
    SKIP,
    -2,
    FRAME_MAX + random.within(-1, 1),
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fff8,
  ] as const
  const value = values[random.within(0, values.length - 1)] as number
  const frameAt = ((head + 8 * random.within(0, 4)) & (SIZE - 1)) >> 2
  const place = random.within(1, 5)
  if (place === 1) ring.control[HEAD_WORD] = value
  else if (place === 2) ring.words[frameAt] = value
  else if (place === 3) ring.words[frameAt + 1] = value
  else if (place === 4) ring.words[random.within(0, ring.words.length - 1)] = value
  else ring.control[random.within(0, ring.control.length - 1)] = value
}
