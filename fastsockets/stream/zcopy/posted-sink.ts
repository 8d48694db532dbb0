/**
 * The other way round: a receive is posted, and the peer writes into its buffer (SDP's SinkAvail and RdmaWrCompl). A sink
 * stands for one place of the stream, `sequence`: whatever else the sender sends there makes it void, on both sides, without
 * a word.
 *
 * Not in worker threads: one that is terminated leaves memory that is soon somebody else's, and the peer might be writing.
 */
import { isMainThread } from 'node:worker_threads'
import type { Registration } from '../../../nic/index.ts'
import type { Stream } from '../stream.ts'
import { OFFER_MAX } from '../stream-layout.ts'
import { sendSinkAvailable } from '../stream-messages.ts'
import { MAY_BE_WRITTEN, tryRegister } from './one-sided.ts'
import { THRESHOLD_MIN } from './threshold.ts'

/** The receiver's half: the buffer of a posted receive, which the peer may fill. */
export class PostedSink {
  readonly #stream: Stream
  #registration: Registration | undefined
  /** How much the peer may write there. */
  #length = 0
  /** The peer's last large chunk is no longer ago than the last receive. Otherwise sinks would be for nothing. */
  #isWorthwhile = false

  constructor(stream: Stream) {
    this.#stream = stream
  }

  noteLargeChunk(): void {
    this.#isWorthwhile = true
  }

  /** `bytes` must stay as they are until the receive is over. Everything before must have been taken. */
  offer(bytes: Uint8Array): void {
    const { channel, peerId, receiving } = this.#stream
    if (!this.#isWorthwhile || this.#registration !== undefined || bytes.length < THRESHOLD_MIN) return
    if (!isMainThread || bytes.length < channel.offerMin) return
    const registration = tryRegister(channel.channel.end, bytes, MAY_BE_WRITTEN)
    if (registration === undefined) return
    const { key } = registration
    const length = Math.min(bytes.length, OFFER_MAX)
    // Refused: then the bytes come as they would have come otherwise.
    if (!sendSinkAvailable(channel.channel, peerId, receiving.sequence, receiving.reported, length, key)) {
      registration.deregister()
      return
    }
    receiving.noteReported()
    this.#registration = registration
    this.#length = length
  }

  /** The peer has written `length` bytes there; false if it cannot have. */
  complete(length: number): boolean {
    if (this.#registration === undefined || length <= 0 || length > this.#length) return false
    this.drop()
    return true
  }

  /** Something else has come instead. */
  noteVoid(): void {
    if (this.#registration !== undefined) this.#isWorthwhile = false
    this.drop()
  }

  /** The program takes its buffer back: the peer writes nothing more there, where it can be kept from that. */
  revoke(): void {
    this.#registration?.revoke()
  }

  drop(): void {
    this.#registration?.deregister()
    this.#registration = undefined
  }
}
