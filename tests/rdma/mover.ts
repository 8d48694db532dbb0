import type { FrameSink, VirtualInterface } from '../../nic/index.ts'
import { OK } from '../../nic/status.ts'
import { sendFrame } from '../support/frames.ts'

const POLL_LIMIT = 64

/** Moves frames over one end, woken by its doorbell; what is to be sent goes as room comes. */
export abstract class Mover implements FrameSink {
  readonly end: VirtualInterface
  readonly #outgoing: Uint8Array[] = []

  constructor(end: VirtualInterface) {
    this.end = end
    end.setDoorbell(() => this.move())
  }

  handleFrame(bytes: Uint8Array, offset: number, length: number): void {
    this.take(Buffer.from(bytes.subarray(offset, offset + length)))
  }

  abstract take(frame: Buffer): void

  send(frame: Uint8Array): void {
    this.#outgoing.push(frame)
  }

  /** All that can be moved now; then the doorbell is awaited. */
  move(): void {
    for (;;) {
      const count = this.end.poll(this, POLL_LIMIT)
      if (count < 0) return
      let sent = 0
      while (sent < this.#outgoing.length && sendFrame(this.end, this.#outgoing[sent] as Buffer) === OK)
        sent++
      this.#outgoing.splice(0, sent)
      if (count === 0 && this.end.arm(this.#outgoing[0]?.length ?? 0)) return
    }
  }
}
