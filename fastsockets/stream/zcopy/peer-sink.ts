import type { RemoteMemory } from '../../../nic/index.ts'
import type { Outgoing } from '../outgoing.ts'
import type { Stream } from '../stream.ts'
import { sendWriteCompleted } from '../stream-messages.ts'
import { importMemory, writeRemote } from './one-sided.ts'
import { THRESHOLD_MIN } from './threshold.ts'

/** The sender's half of posted-sink.ts: the buffer of the peer's receive, for one place of the stream. */
export class PeerSink {
  readonly #stream: Stream
  readonly #outgoing: Outgoing
  #memory: RemoteMemory | undefined
  #sequence = 0
  #length = 0
  /** Bytes that are there already, and of which the peer does not know yet. */
  #written = 0

  constructor(stream: Stream, outgoing: Outgoing) {
    this.#stream = stream
    this.#outgoing = outgoing
  }

  /** The peer has posted a receive; false if its key does not give what it says. One that comes too late is void. */
  open(sequence: number, length: number, key: Uint8Array): boolean {
    const memory = importMemory(this.#stream.channel.channel.end, key, length, 'remoteWrite')
    if (memory === undefined) return false
    if (sequence !== this.#outgoing.window.sequence || this.#written > 0) return true
    this.#memory = memory
    this.#sequence = sequence
    this.#length = length
    return true
  }

  /** Whether the chunk that is next should go there; if a part of it is there already, it must. */
  get isWanted(): boolean {
    const { window, pending } = this.#outgoing
    if (this.#memory === undefined) return false
    if (this.#sequence !== window.sequence) {
      this.drop()
      return false
    }
    return this.#written > 0 || pending.nextLength >= Math.max(THRESHOLD_MIN, this.#stream.channel.offerMin)
  }

  /** False if the peer cannot be told yet: again later. If its memory cannot be written, the sink is void. */
  write(): boolean {
    const { window, pending } = this.#outgoing
    const { channel, peerId, receiving, counts } = this.#stream
    // What is there already stays as long as it was, whatever the chunks are by now.
    const chunk = pending.next(this.#written || this.#length)
    if (this.#written === 0 && !writeRemote(channel.channel.end, chunk, this.#memory as RemoteMemory)) {
      this.drop()
      return true
    }
    this.#written = chunk.length
    if (!sendWriteCompleted(channel.channel, peerId, window.sequence, receiving.reported, this.#written)) {
      channel.scheduleSend(this.#stream)
      return false
    }
    receiving.noteReported()
    window.advance(this.#written)
    counts.sent(this.#written)
    counts.fetchedByPeer(this.#written)
    pending.skip(this.#written)
    this.drop()
    return true
  }

  drop(): void {
    this.#memory = undefined
    this.#written = 0
  }
}
