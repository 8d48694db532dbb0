/** One end of an exchange of numbered frames both ways that runs by itself from the event loop, sleeping when it can. */
import { OK, type VirtualInterface } from '../../nic/index.ts'
import { NumberedSink, sendNumbered } from './numbered-frames.ts'

const BURST = 64
const ROUNDS_PER_TURN = 16
/** More than a short frame needs. */
const ROOM = 2048

export class NumberedExchange {
  readonly sink: NumberedSink
  sent = 0
  /** How often there was nothing to do but to wait for the doorbell. */
  sleeps = 0
  /** Everything was sent, and everything has come. It goes on to acknowledge and to send again until it is closed. */
  readonly done: Promise<void>
  #resolve: () => void = () => {}
  readonly #end: VirtualInterface
  readonly #count: number

  constructor(end: VirtualInterface, count: number) {
    this.#end = end
    this.#count = count
    this.sink = new NumberedSink(end)
    this.done = new Promise(resolve => {
      this.#resolve = resolve
    })
    end.ref()
    end.setDoorbell(this.#turn)
    setImmediate(this.#turn)
  }

  readonly #turn = (): void => {
    if (this.#end.state !== 'open') return
    for (let round = 0; round < ROUNDS_PER_TURN; round++) {
      const before = this.sent
      for (let i = 0; i < BURST && this.sent < this.#count; i++) {
        if (sendNumbered(this.#end, this.sent) !== OK) break
        this.sent++
      }
      const received = this.#end.poll(this.sink, BURST)
      if (this.sent === this.#count && this.sink.next === this.#count) this.#resolve()
      if (received === 0 && this.sent === before && this.#end.arm(this.sent < this.#count ? ROOM : 0)) {
        this.sleeps++
        return
      }
    }
    setImmediate(this.#turn)
  }
}
