/** Sending and collecting whole frames over a virtual interface. */
import {
  type CompletionSink,
  copyBytes,
  type FrameSink,
  OK,
  type Status,
  type VirtualInterface,
} from '../../nic/index.ts'

export function sendFrame(end: VirtualInterface, content: Uint8Array): Status {
  const at = end.reserve(content.length)
  if (at < 0) return at as Status
  copyBytes(content, 0, end.sendBytes, at, content.length)
  end.commit(content.length)
  return OK
}

/** Sends frames of `length` bytes until the queue is full; returns how many it took and the refusal. */
export function fill(end: VirtualInterface, length: number): { count: number; refusal: Status } {
  const content = new Uint8Array(length)
  for (let count = 0; ; count++) {
    const status = sendFrame(end, content)
    if (status !== OK) return { count, refusal: status }
  }
}

/** Keeps a copy of every frame. */
export class Collector implements FrameSink {
  readonly frames: Buffer[] = []
  readonly offsets: number[] = []

  handleFrame(bytes: Uint8Array, offset: number, length: number): void {
    this.offsets.push(offset)
    this.frames.push(Buffer.from(bytes.subarray(offset, offset + length)))
  }
}

/** A sink that calls a function with each frame's content. */
export class Handler implements FrameSink {
  readonly #handle: (content: Uint8Array) => void

  constructor(handle: (content: Uint8Array) => void) {
    this.#handle = handle
  }

  handleFrame(bytes: Uint8Array, offset: number, length: number): void {
    this.#handle(bytes.subarray(offset, offset + length))
  }
}

export class CompletionLog implements CompletionSink {
  readonly completions: [workId: number, status: Status][] = []

  handleCompletion(workId: number, status: Status): void {
    this.completions.push([workId, status])
  }
}

/** Polls until the queue is empty; returns the frames. */
export function drain(end: VirtualInterface): Buffer[] {
  const collector = new Collector()
  while (end.poll(collector, 64) > 0) {}
  return collector.frames
}

/** Content that no other `number` has, of any length. */
export function patterned(length: number, number: number): Buffer {
  return fillPattern(Buffer.alloc(length), number)
}

const PATTERN_PERIOD = 65536
/** Byte i is i * 13 + (i >> 8): 256 bytes further on it is one more. */
const PATTERN = new Uint8Array(2 * PATTERN_PERIOD)
for (let i = 0; i < PATTERN_PERIOD; i++) PATTERN[i] = i * 13 + (i >> 8)
PATTERN.copyWithin(PATTERN_PERIOD, 0)

/** Byte i becomes number * 167 + i * 13 + (i >> 8). */
export function fillPattern<T extends Uint8Array>(bytes: T, number: number): T {
  const from = ((number * 167) & 0xff) << 8
  for (let at = 0; at < bytes.length; at += PATTERN_PERIOD)
    bytes.set(PATTERN.subarray(from, from + Math.min(PATTERN_PERIOD, bytes.length - at)), at)
  return bytes
}
