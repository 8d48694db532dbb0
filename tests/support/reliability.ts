/** The reliability layer's frames, made and read by hand, and a network that loses chosen frames. */
import { ReliableInterface } from '../../am/index.ts'
import { CRC_START, crcOfWords } from '../../am/reliability/crc32c.ts'
import {
  ACK_WORD,
  align8,
  CRC_WORD,
  ECHO_WORD,
  FRESH_ECHO,
  HEADER_SIZE,
  HEADER_WORDS,
  KIND_MASK,
  KIND_WORD,
  ORDINAL_WORD,
  SACK_FRAMES,
  SACK_WORD,
  SEQUENCE_WORD,
} from '../../am/reliability/reliability-layout.ts'
import type { ReliabilityOptions } from '../../am/reliability/reliability-options.ts'
import { ForwardingInterface, openLoopbackPair, type VirtualInterface } from '../../nic/index.ts'
import { Collector, sendFrame } from './frames.ts'

export interface Frame {
  readonly kind: number
  readonly sequence: number
  readonly ordinal: number
  readonly ack: number
  readonly echo: number
  /** Whether the echo is said for the first time. */
  readonly isFresh: boolean
  /** The frames that SACK says have come and wait. */
  readonly sacked: readonly number[]
  readonly content: Buffer
}

/** The bytes of a frame with a right checksum; what is not said is 0, and `echo` is -1: nothing was heard yet. */
export function encodeFrame(frame: Partial<Frame> & { readonly sackAt?: number }): Buffer {
  const content = frame.content ?? Buffer.alloc(0)
  const words = new Int32Array(align8(HEADER_SIZE + content.length) / 4)
  const sackAt = frame.sackAt ?? (frame.sacked?.[0] ?? 0) & -SACK_FRAMES
  words[KIND_WORD] = (frame.kind ?? 0) | (frame.isFresh ? FRESH_ECHO : 0) | sackAt
  words[SEQUENCE_WORD] = frame.sequence ?? 0
  words[ORDINAL_WORD] = frame.ordinal ?? 0
  words[ACK_WORD] = frame.ack ?? 0
  words[ECHO_WORD] = frame.echo ?? -1
  for (const sequence of frame.sacked ?? []) {
    const word = SACK_WORD + ((sequence >> 5) & 1)
    words[word] = (words[word] as number) | (1 << (sequence & 31))
  }
  const bytes = Buffer.from(words.buffer, 0, HEADER_SIZE + content.length)
  content.copy(bytes, HEADER_SIZE)
  return seal(bytes)
}

/** Gives any bytes, as long as a header at least, the checksum that they need to be believed. */
export function seal(bytes: Buffer): Buffer {
  const length = bytes.length
  const padded = new Int32Array(align8(length) / 4)
  Buffer.from(padded.buffer).set(bytes)
  padded[CRC_WORD] = length
  const wholeWords = (length >> 3) << 1
  let crc = crcOfWords(CRC_START, padded, 0, wholeWords)
  for (const byte of bytes.subarray(4 * wholeWords)) crc = addByte(crc, byte)
  bytes.writeInt32LE(~crc, 4 * CRC_WORD)
  return bytes
}

export function decodeFrame(bytes: Buffer): Frame {
  const word = (index: number): number => bytes.readInt32LE(4 * index)
  const sackAt = word(KIND_WORD) & -SACK_FRAMES
  const isSacked = (i: number): boolean => ((word(SACK_WORD + (i >> 5)) >>> (i & 31)) & 1) === 1
  return {
    kind: word(KIND_WORD) & KIND_MASK,
    sequence: word(SEQUENCE_WORD),
    ordinal: word(ORDINAL_WORD),
    ack: word(ACK_WORD),
    echo: word(ECHO_WORD),
    isFresh: (word(KIND_WORD) & FRESH_ECHO) !== 0,
    sacked: Array.from({ length: SACK_FRAMES }, (_, i) => i)
      .filter(isSacked)
      .map(i => sackAt + i),
    content: bytes.subarray(4 * HEADER_WORDS),
  }
}

/** A reliable interface whose peer is played by the test. */
export class Stage {
  readonly end: ReliableInterface
  readonly #wire: VirtualInterface

  constructor(t: { teardown(end: () => void): void }, options?: ReliabilityOptions) {
    const [near, far] = openLoopbackPair()
    this.end = new ReliableInterface(near, options)
    this.#wire = far
    t.teardown(() => this.end.close())
  }

  /** What the end has sent since the last time. */
  sent(): Frame[] {
    const collector = new Collector()
    while (this.#wire.poll(collector, 64) > 0) {}
    return collector.frames.map(decodeFrame)
  }

  say(frame: Parameters<typeof encodeFrame>[0]): void {
    sendFrame(this.#wire, encodeFrame(frame))
  }

  sayBytes(bytes: Buffer): void {
    sendFrame(this.#wire, bytes)
  }
}

/** Loses the frames for which `loses` says so; they are counted from 0. */
export class LossyInterface extends ForwardingInterface {
  lost = 0
  #count = 0
  readonly #loses: (number: number) => boolean

  constructor(inner: VirtualInterface, loses: (number: number) => boolean) {
    super(inner, inner.driver, { ...inner.capabilities, reliable: false })
    this.#loses = loses
  }

  override commit(length: number): void {
    if (this.#loses(this.#count++)) {
      this.lost++
      this.inner.cancel()
    } else {
      this.inner.commit(length)
    }
  }
}

export interface LossyPair {
  readonly wire: LossyInterface
  readonly near: ReliableInterface
  readonly far: ReliableInterface
}

/** Two real ends; the near one's frames are lost as `loses` says. */
export function openLossy(
  t: { teardown(end: () => void): void },
  loses: (number: number) => boolean,
  options?: ReliabilityOptions,
): LossyPair {
  const [near, far] = openLoopbackPair()
  const wire = new LossyInterface(near, loses)
  const ends = { wire, near: new ReliableInterface(wire, options), far: new ReliableInterface(far, options) }
  t.teardown(() => {
    ends.near.close()
    ends.far.close()
  })
  return ends
}

/** Bit by bit, as the definition has it. */
function addByte(crc: number, byte: number): number {
  let sum = crc ^ byte
  for (let bit = 0; bit < 8; bit++) sum = (sum & 1) === 0 ? sum >>> 1 : (sum >>> 1) ^ 0x82f63b78
  return sum
}
