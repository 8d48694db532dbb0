import {
  EXTRA_SIZES,
  FLAG,
  HANDLER_MASK,
  HANDLER_SHIFT,
  HEAD_SIZE,
  headerSize,
  KIND_BOUNCE,
  KIND_CREDIT,
  KIND_GET,
  KIND_MASK,
  KIND_PART,
  KIND_REPLY,
  KIND_RETURN,
  NO_SLOT,
  REGION_SIZE,
  RUN_COUNT_SHIFT,
  RUN_FIRST_MASK,
  SLOT_SHIFT,
  TAG_SIZE,
  WORD_COUNT_MASK,
  WORD_COUNT_SHIFT,
  WORDS_MAX,
} from './message-layout.ts'
import { undeliverableReason } from './undeliverable.ts'

const KIND_NAMES = ['REQUEST', 'REPLY', 'CREDIT', 'RETURN', 'LONG', 'PART', 'GET', 'BOUNCE'] as const

/**
 * Describes a frame for people: `traceDriver(driver, write, describeFrame)`. The driver must be reliable: over
 * others, a frame begins with another header (reliability-layout.ts).
 *
 *   LONG handler 5 slot 3 tag 0x2a region 4096+100 words 1 -2 payload 100 acks 7+2
 */
export function describeFrame(bytes: Uint8Array, offset: number, length: number): string {
  if (length < HEAD_SIZE) return `no message: ${length} bytes`
  const frame = new DataView(bytes.buffer, bytes.byteOffset + offset, length)
  const head = frame.getInt32(0, true)
  const kind = head & KIND_MASK
  const wordCount = (head >> WORD_COUNT_SHIFT) & WORD_COUNT_MASK
  const extra = EXTRA_SIZES[head & (KIND_MASK | FLAG)] as number
  const header = headerSize(wordCount, extra)
  if (wordCount > WORDS_MAX || header > length) return `no message: head 0x${(head >>> 0).toString(16)}`
  const said: string[] = [KIND_NAMES[kind] as string, ...describeAddress(kind, head)]
  const tagSize = kind !== KIND_REPLY && (head & FLAG) !== 0 && extra > 0 ? TAG_SIZE : 0
  if (tagSize > 0) said.push(`tag 0x${frame.getBigUint64(HEAD_SIZE, true).toString(16)}`)
  if (extra - tagSize === REGION_SIZE) {
    const at = HEAD_SIZE + extra - REGION_SIZE
    said.push(`region ${frame.getUint32(at, true)}+${frame.getUint32(at + 4, true)}`)
  }
  const words = Array.from({ length: wordCount }, (_, i) => frame.getInt32(HEAD_SIZE + extra + 4 * i, true))
  if (words.length > 0) said.push(`words ${words.join(' ')}`)
  if (length > header) said.push(`payload ${length - header}`)
  const run = frame.getUint32(4, true)
  if (run !== 0) said.push(`acks ${run & RUN_FIRST_MASK}+${run >>> RUN_COUNT_SHIFT}`)
  return said.join(' ')
}

function describeAddress(kind: number, head: number): string[] {
  const handler = (head >> HANDLER_SHIFT) & HANDLER_MASK
  const slot = head >>> SLOT_SHIFT
  const slotText = slot === NO_SLOT ? [] : [`slot ${slot}`]
  if (kind === KIND_BOUNCE) return [reasonText(slot), `handler ${handler}`]
  if (kind === KIND_CREDIT) return []
  if (kind === KIND_RETURN) return [reasonText(handler), ...slotText]
  if (kind === KIND_PART || kind === KIND_GET) return slotText
  return [`handler ${handler}`, ...slotText]
}

function reasonText(reason: number): string {
  return undeliverableReason(reason) ?? `reason ${reason}`
}
