/**
 * Chaskey-12, a message authentication code for 32-bit processors (Mouha et al., "Chaskey", SAC 2014; ISO/IEC 29192-6):
 * an attacker without the key can neither compute a tag nor change the words so that the tag still fits. SipHash, the usual choice,
 * adds 64-bit words, for which V8 needs four times the instructions.
 */
const ROUNDS = 12
/** 16-byte blocks, as words. */
const BLOCK_WORDS = 4
/** The key, and the subkey of whole last blocks. */
const SCHEDULE_WORDS = 8

/** The tag that `authenticate` computed last. */
export const tag = new Int32Array(2)

/** The key in the form that `authenticate` needs. */
export function scheduleOf(key: Buffer): Int32Array {
  const schedule = new Int32Array(SCHEDULE_WORDS)
  for (let i = 0; i < BLOCK_WORDS; i++) schedule[i] = key.readInt32LE(4 * i)
  // Times x in GF(2^128).
  const carry = (schedule[3] as number) < 0 ? 0x87 : 0
  for (let i = 0; i < BLOCK_WORDS; i++)
    schedule[BLOCK_WORDS + i] =
      ((schedule[i] as number) << 1) ^ (i === 0 ? carry : (schedule[i - 1] as number) >>> 31)
  return schedule
}

/** Hot. Computes `tag` over `count` words from `words[at]` on: whole blocks, at least one. */
export function authenticate(
  schedule: Int32Array,
  words: Int32Array,
  at: number,
  count: number,
  rounds = ROUNDS,
): void {
  let v0 = schedule[0] as number
  let v1 = schedule[1] as number
  let v2 = schedule[2] as number
  let v3 = schedule[3] as number
  const last = at + count - BLOCK_WORDS
  for (let i = at; i <= last; i += BLOCK_WORDS) {
    v0 ^= words[i] as number
    v1 ^= words[i + 1] as number
    v2 ^= words[i + 2] as number
    v3 ^= words[i + 3] as number
    if (i === last) {
      v0 ^= schedule[4] as number
      v1 ^= schedule[5] as number
      v2 ^= schedule[6] as number
      v3 ^= schedule[7] as number
    }
    for (let round = rounds; round > 0; round--) {
      v0 = (v0 + v1) | 0
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
      v0 = (v0 << 16) | (v0 >>> 16)
      v2 = (v2 + v3) | 0
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
      v0 = (v0 + v3) | 0
      v3 = ((v3 << 13) | (v3 >>> 19)) ^ v0
      v2 = (v2 + v1) | 0
      v1 = ((v1 << 7) | (v1 >>> 25)) ^ v2
      v2 = (v2 << 16) | (v2 >>> 16)
    }
  }
  tag[0] = v0 ^ (schedule[4] as number)
  tag[1] = v1 ^ (schedule[5] as number)
}
