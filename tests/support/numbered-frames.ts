/** Frames whose number says everything about them, so that two processes can agree on any count of them. */
import { type FrameSink, OK, type Status, type VirtualInterface } from '../../nic/index.ts'

const SHORT_MAX = 64
const LONG_MAX = 2048

function mix(number: number): number {
  const mixed = Math.imul(number ^ (number >>> 15), 0x2c1b3c6d)
  return mixed ^ (mixed >>> 13)
}

/** Mostly short ones; one of 64 is long. */
function lengthOf(number: number): number {
  const mixed = mix(number) >>> 0
  return 4 + (mixed % ((mixed & 0x3f000000) === 0 ? LONG_MAX : SHORT_MAX))
}

export function sendNumbered(end: VirtualInterface, number: number): Status {
  const length = lengthOf(number)
  const at = end.reserve(length)
  if (at < 0) return at as Status
  const words = end.sendWords
  const first = at >> 2
  words[first] = number
  for (let i = 1; 4 * i < length; i++) words[first + i] = mix(number + i)
  end.commit(length)
  return OK
}

/** Expects all numbers in their order, each once, and every frame intact. */
export class NumberedSink implements FrameSink {
  /** The number that comes next. */
  next = 0
  wrong = 0
  readonly #end: VirtualInterface

  constructor(end: VirtualInterface) {
    this.#end = end
  }

  handleFrame(bytes: Uint8Array, offset: number, length: number): void {
    if (!this.#isRight(bytes, offset, length)) this.wrong++
    this.next++
  }

  #isRight(bytes: Uint8Array, offset: number, length: number): boolean {
    if (length !== lengthOf(this.next)) return false
    const words = this.#end.receiveWords
    const first = offset >> 2
    if (words[first] !== this.next) return false
    const wholeWords = length >> 2
    for (let i = 1; i < wholeWords; i++) if (words[first + i] !== mix(this.next + i)) return false
    for (let i = 4 * wholeWords; i < length; i++) {
      if (bytes[offset + i] !== ((mix(this.next + wholeWords) >>> (8 * (i & 3))) & 0xff)) return false
    }
    return true
  }
}
