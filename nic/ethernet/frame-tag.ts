/**
 * The tag of a frame, made as UMAC's (RFC 4418): NH of the content, 16 bytes for each 1024, then Chaskey-12 of NONCE, LENGTH, KIND
 * and those bytes. No nonce comes twice, so that the tags tell nothing of the hashes.
 */
import { copyWords } from '../copy.ts'
import { authenticate, scheduleOf } from './chaskey.ts'
import { AUTHENTIC_WORD, CONTENT_WORD, MTU_MAX } from './frame-layout.ts'
import { NH_KEY_SIZE, NH_SIZE, type Nh, openNh } from './nh.ts'

export { tag } from './chaskey.ts'

const CHASKEY_KEY_SIZE = 16
/** Bytes from which `keysFrom` makes the keys of a connection. */
export const KEYS_SIZE = 2 * CHASKEY_KEY_SIZE + NH_KEY_SIZE

/** Keys of one direction. Both directions share the key of NH. */
export interface FrameKey {
  readonly nh: Int32Array
  readonly chaskey: Int32Array
}

// Memory of NH: its key, the content, and the input of Chaskey. In words.
const CONTENT_AT = 512
const INPUT_AT = CONTENT_AT + MTU_MAX / 4
const HEADER_WORDS = CONTENT_WORD - AUTHENTIC_WORD
const NH_WORDS = NH_SIZE / 4
const RESULT_WORDS = 4

let nh: Nh | undefined
/** The key that lies in the memory. */
let keyThere: Int32Array | undefined

/** Throws where this is not possible. */
export function prepareTags(): void {
  nh ??= openNh()
}

/** The keys of the offering side's frames, and of the other's. */
export function keysFrom(bytes: ArrayBuffer): readonly [FrameKey, FrameKey] {
  const shared = new Int32Array(bytes, 2 * CHASKEY_KEY_SIZE, NH_KEY_SIZE / 4)
  const keyAt = (at: number): FrameKey => {
    return { nh: shared, chaskey: scheduleOf(Buffer.from(bytes, at, CHASKEY_KEY_SIZE)) }
  }
  return [keyAt(0), keyAt(CHASKEY_KEY_SIZE)]
}

/** Hot. Computes `tag` of the frame with its header at `words[head]` and `size` bytes of content with the padding. */
export function tagFrame(key: FrameKey, words: Int32Array, head: number, size: number): void {
  const { words: memory, hash } = nh as Nh
  if (keyThere !== key.nh) {
    keyThere = key.nh
    memory.set(key.nh)
  }
  let input = INPUT_AT
  for (let i = 0; i < HEADER_WORDS; i++) memory[input++] = words[head + AUTHENTIC_WORD + i] as number
  const content = head + CONTENT_WORD
  const count = size >> 2
  copyWords(words, content, memory, CONTENT_AT, count)
  for (let at = 0; at < count; at += NH_WORDS, input += RESULT_WORDS)
    hash(4 * (CONTENT_AT + at), 4 * (CONTENT_AT + Math.min(count, at + NH_WORDS)), 0, 4 * input)
  authenticate(key.chaskey, memory, INPUT_AT, input - INPUT_AT)
}
