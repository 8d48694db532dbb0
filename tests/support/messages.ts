/** Messages as a peer of any morals would put them on the wire, and those that are on it. */
import {
  CREDIT_RUNS_MAX,
  EXTRA_SIZES,
  encodeHead,
  FLAG,
  HANDLER_MASK,
  HANDLER_SHIFT,
  HEAD_SIZE,
  headerSize,
  KIND_CREDIT,
  KIND_MASK,
  KIND_REPLY,
  SLOT_SHIFT,
  WORD_COUNT_MASK,
  WORD_COUNT_SHIFT,
} from '../../am/message-layout.ts'
import { OK, type VirtualInterface } from '../../nic/index.ts'
import { drain, sendFrame } from './frames.ts'

export interface WireMessage {
  readonly kind: number
  readonly handler: number
  readonly slot: number
  /** A run as `encodeRun` makes it, or 0. */
  readonly acks: number
  /** Low and high word. */
  readonly tag: readonly [number, number] | undefined
  /** Offset and length. */
  readonly region: readonly [number, number] | undefined
  readonly words: readonly number[]
  readonly payload: Buffer
}

const NOTHING: WireMessage = {
  kind: 0,
  handler: 0,
  slot: 0,
  acks: 0,
  tag: undefined,
  region: undefined,
  words: [],
  payload: Buffer.alloc(0),
}

/** The frame of a message. The flag is set if there is a tag, or a region in a kind that has none without it. */
export function encodeMessage(message: Partial<WireMessage>): Buffer {
  const { kind, handler, slot, acks, tag, region, words, payload } = { ...NOTHING, ...message }
  const hasFlag = tag !== undefined || (region !== undefined && EXTRA_SIZES[kind] === 0)
  const extra = [...(tag ?? []), ...(region ?? [])]
  const header = headerSize(words.length, 4 * extra.length)
  const frame = Buffer.alloc(header + payload.length)
  const head = encodeHead(hasFlag ? kind | FLAG : kind, words.length, handler, slot)
  ;[head, acks, ...extra, ...words].forEach((word, i) => {
    frame.writeInt32LE(word | 0, 4 * i)
  })
  payload.copy(frame, header)
  return frame
}

export function decodeMessage(frame: Buffer): WireMessage {
  const head = frame.readUInt32LE(0)
  const kind = head & KIND_MASK
  const extra = EXTRA_SIZES[head & (KIND_MASK | FLAG)] as number
  const hasTag = (head & FLAG) !== 0 && kind !== KIND_REPLY && extra > 0
  const pairs: (readonly [number, number])[] = []
  for (let at = HEAD_SIZE; at < HEAD_SIZE + extra; at += 8) {
    pairs.push([frame.readInt32LE(at), frame.readInt32LE(at + 4)])
  }
  const tag = hasTag ? pairs.shift() : undefined
  const wordCount = (head >> WORD_COUNT_SHIFT) & WORD_COUNT_MASK
  return {
    kind,
    handler: (head >> HANDLER_SHIFT) & HANDLER_MASK,
    slot: head >>> SLOT_SHIFT,
    acks: frame.readInt32LE(4),
    tag,
    region: pairs[0],
    words: Array.from({ length: wordCount }, (_, i) => frame.readInt32LE(HEAD_SIZE + extra + 4 * i)),
    payload: frame.subarray(headerSize(wordCount, extra)),
  }
}

/** Puts a message on the wire, around any channel; false if there is no room for it. */
export function sendMessage(end: VirtualInterface, message: Partial<WireMessage>): boolean {
  return sendFrame(end, encodeMessage(message)) === OK
}

/** Takes every message off the wire, around any channel. */
export function drainMessages(end: VirtualInterface): WireMessage[] {
  return drain(end).map(decodeMessage)
}

/** Leaves room for nothing more on the way from `end`, and says nothing by it: credits that return none. */
export function block(end: VirtualInterface): void {
  while (sendMessage(end, { kind: KIND_CREDIT, payload: Buffer.alloc(4 * CREDIT_RUNS_MAX) })) {}
  while (sendMessage(end, { kind: KIND_CREDIT })) {}
}
