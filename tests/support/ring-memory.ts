/** A ring in ordinary memory with both its halves, and its words for tests that scribble on them. */
import type { VirtualInterface } from '../../nic/index.ts'
import { RingConsumer } from '../../nic/ring/ring-consumer.ts'
import { CONTROL_SIZE, RING_SIZE_MIN, ringBytes } from '../../nic/ring/ring-layout.ts'
import { RingProducer } from '../../nic/ring/ring-producer.ts'

export class RingMemory {
  readonly producer: RingProducer
  readonly consumer: RingConsumer
  /** HEAD, ARMED, ROOM_WANTED at the indices of ring-layout.ts. */
  readonly control: Int32Array
  readonly words: Int32Array
  readonly bytes: Uint8Array

  constructor(size = RING_SIZE_MIN, memory = new ArrayBuffer(ringBytes(size))) {
    this.producer = new RingProducer(memory, 0, size)
    this.consumer = new RingConsumer(memory, 0, size)
    this.control = new Int32Array(memory, 0, CONTROL_SIZE / 4)
    this.words = new Int32Array(memory, CONTROL_SIZE)
    this.bytes = new Uint8Array(memory, CONTROL_SIZE)
  }

  /** Sends one frame of `length` bytes; returns whether there was room. */
  send(length: number): boolean {
    if (this.producer.reserve(length) < 0) return false
    this.producer.commit(length)
    return true
  }
}

/** The control words of the ring in which `end` sends, over whatever memory it lies in. */
export function sendControlOf(end: VirtualInterface): Int32Array {
  const { buffer, byteOffset } = end.sendBytes
  return new Int32Array(buffer, byteOffset - CONTROL_SIZE, CONTROL_SIZE / 4)
}
