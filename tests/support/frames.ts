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

export function fillPattern<T extends Uint8Array>(bytes: T, number: number): T {
  for (let i = 0; i < bytes.length; i++) bytes[i] = (number * 167 + i * 13 + (i >> 8)) & 0xff
  return bytes
}
