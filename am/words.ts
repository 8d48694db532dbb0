import { rangeError, typeError } from './errors.ts'
import { WORDS_MAX } from './message-layout.ts'

/**
 * Words of the message being sent. Public functions take them as separate parameters and count their `arguments`,
 * because a rest parameter makes an array for every message, also once V8 (Node 20 to 26) has compiled the function.
 */
export class Words {
  readonly values = new Int32Array(WORDS_MAX)
  count = 0

  set(
    count: number,
    a?: number,
    b?: number,
    c?: number,
    d?: number,
    e?: number,
    f?: number,
    g?: number,
    h?: number,
  ): void {
    if (count > WORDS_MAX) refuseCount(count)
    if (count > 0) this.put(0, a)
    if (count > 1) this.put(1, b)
    if (count > 2) this.put(2, c)
    if (count > 3) this.put(3, d)
    if (count > 4) this.put(4, e)
    if (count > 5) this.put(5, f)
    if (count > 6) this.put(6, g)
    if (count > 7) this.put(7, h)
    this.count = count
  }

  setArray(words: readonly number[]): void {
    if (!Array.isArray(words)) throw typeError(`words must be an array, not ${typeof words}`)
    if (words.length > WORDS_MAX) refuseCount(words.length)
    for (let i = 0; i < words.length; i++) {
      const word = words[i] as number
      if (typeof word !== 'number' || word !== (word | 0)) refuseWord(i, word)
      this.values[i] = word
    }
    this.count = words.length
  }

  copy(): Words {
    const copy = new Words()
    copy.values.set(this.values)
    copy.count = this.count
    return copy
  }

  private put(index: number, word: number | undefined): void {
    if (typeof word !== 'number' || word !== (word | 0)) refuseWord(index, word)
    this.values[index] = word
  }
}

function refuseCount(count: number): never {
  throw rangeError(`a message of ${count} words; the most is ${WORDS_MAX}`)
}

function refuseWord(index: number, word: unknown): never {
  if (typeof word !== 'number') throw typeError(`word ${index} must be a number, not ${typeof word}`)
  throw rangeError(`word ${index} must be a 32-bit signed integer, not ${word}`)
}

export const NO_WORDS = new Words()
