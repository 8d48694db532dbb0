/** The sending half of a stream: what a program writes, until it is out or the peer has fetched it, and the FIN behind it. */
import { copyBytes } from '../../nic/index.ts'
import { SendWindow } from './byte-windows.ts'
import { flushAllHeld, HELD_CHUNK_MAX, HeldBytes, type Holder } from './held-bytes.ts'
import { PendingChunks } from './pending-chunks.ts'
import type { Stream } from './stream.ts'
import { CHANNEL_LINGER_MAX, FRAMING_MAX, LINGER_MAX } from './stream-layout.ts'
import { reserveData, sendFin } from './stream-messages.ts'
import { ChunkOffers } from './zcopy/chunk-offers.ts'
import { PeerSink } from './zcopy/peer-sink.ts'

export class Outgoing implements Holder {
  readonly window = new SendWindow()
  readonly pending = new PendingChunks()
  readonly #held = new HeldBytes()
  readonly #stream: Stream
  readonly #offers: ChunkOffers
  readonly #sink: PeerSink
  #finState: 'open' | 'wanted' | 'sent' = 'open'
  /** Where `window` was when the sink last heard of its pending write. */
  #sequenceTold = 0
  /** What it had still to send when it closed. */
  #lingering = 0
  /** Of the write that is pending. */
  #isFramed = false
  #flags = 0

  constructor(stream: Stream) {
    this.#stream = stream
    this.#offers = new ChunkOffers(stream, this)
    this.#sink = new PeerSink(stream, this)
  }

  /** A write is not out yet. */
  get isWaiting(): boolean {
    return this.pending.isWaiting
  }

  /** Of a write that waits. One that the peer has fetched to its end has still to be told so. */
  get hasUnsent(): boolean {
    return this.pending.length > 0
  }

  /**
   * Whether TCP would tell a write of a reset: one that does not wait for the peer's program to read more first; if nobody
   * reads here, any that waits.
   */
  hearsOfReset(isReading = false): boolean {
    return this.hasUnsent && (!isReading || this.window.credit > 0)
  }

  /** Whether something was on its way to a peer that had `received` so much when it closed. To TCP it was there, unread. */
  isBeyond(received: number): boolean {
    return this.#offers.isOut || ((this.window.sequence - received) | 0) > 0
  }

  /** The program has ended this direction. */
  get isFinished(): boolean {
    return this.#finState !== 'open'
  }

  /**
   * True if all of it is out; otherwise the chunks must stay as they are until the sink is told. `isFramed`: they are frames that
   * native code has made, for native code. `flags` of its messages.
   */
  write(chunks: readonly Uint8Array[], isFramed = false, flags = 0): boolean {
    flushAllHeld()
    if (this.isWaiting) {
      // Native code, and a program that wrote before it: both hear when all of it is out.
      this.pending.add(chunks)
      this.#noteWaiting()
      return false
    }
    this.pending.set(chunks)
    this.#isFramed = isFramed
    this.#flags = flags
    if (this.#sendPending()) return true
    this.pending.note()
    this.#noteWaiting()
    return false
  }

  /** Keeps a small write until the program's callback is over; false if it must go by `write`. */
  hold(chunk: Uint8Array): boolean {
    const { length } = chunk
    if (this.isWaiting || length > HELD_CHUNK_MAX || this.#held.length + length > this.window.credit)
      return false
    const { isCongested, segmentMax } = this.#stream.channel
    // The ring is full now: the callback of this write must wait for room.
    if (isCongested) return false
    return (
      this.#held.add(this, chunk, segmentMax) || (this.flushHeld() && this.#held.add(this, chunk, segmentMax))
    )
  }

  /** Sends what is held, in one message; false if there is no room for it yet. */
  flushHeld(): boolean {
    const { length } = this.#held
    if (length === 0) return true
    const { channel } = this.#stream
    if (!channel.isOpen) {
      this.#held.clear()
      return true
    }
    const at = this.#reserve(length)
    if (at < 0) {
      channel.scheduleSend(this.#stream)
      this.#noteWaiting()
      return false
    }
    this.#held.moveTo(channel.channel.sendBytes, at)
    this.#commit(length)
    return true
  }

  /** Sends what finds credit and room now, and keeps nothing of it; returns how much. Nothing may be pending. */
  trySend(bytes: Uint8Array): number {
    let sent = 0
    while (sent < bytes.length) {
      const length = this.#sendPart(bytes, sent)
      if (length <= 0) break
      sent += length
    }
    return sent
  }

  /** FIN follows what is pending; true if it is out already. */
  finish(): boolean {
    flushAllHeld()
    this.#finState = 'wanted'
    this.#stream.counts.endedHere()
    return this.#sendFin()
  }

  /** The peer is no more: an end that waits is over; false if none does. */
  giveUpFin(): boolean {
    if (this.#finState !== 'wanted' || this.isWaiting) return false
    this.#finState = 'sent'
    return true
  }

  /** The peer's program has taken bytes; returns what is wrong with the claim, if anything. */
  handleConsumed(consumed: number): string | undefined {
    const progress = this.window.takeConsumed(consumed)
    if (progress === 0) return undefined
    if (progress < 0) return `${consumed >>> 0} bytes consumed of ${this.window.sequence >>> 0} sent`
    this.#stream.counts.takenByPeer(progress)
    if (this.isWaiting) this.#stream.channel.scheduleSend(this.#stream)
    return undefined
  }

  /** The peer has fetched up to `sequence`, and wants the rest as data; returns what is wrong with that, if anything. */
  handleReadCompleted(sequence: number): string | undefined {
    const fetched = this.#offers.complete(sequence)
    if (fetched < 0) return 'an RD_COMPL that fits no offer'
    const { counts, state, channel } = this.#stream
    this.window.advance(fetched)
    counts.sent(fetched)
    counts.fetchedByPeer(fetched)
    if (state !== 'open' && !this.isWaiting) return undefined
    this.pending.skip(fetched)
    channel.scheduleSend(this.#stream)
    return undefined
  }

  /** The peer has posted a receive that a large chunk may go to; returns what is wrong with it, if anything. */
  handleSinkAvailable(sequence: number, length: number, key: Uint8Array): string | undefined {
    if (this.#sink.open(sequence, length, key)) return undefined
    return `a posted receive of ${length} bytes with a key that does not fit`
  }

  /** What was refused before, in order; false if it is refused again. */
  resume(): boolean {
    const { sink } = this.#stream
    if (!this.flushHeld()) return false
    if (!this.isWaiting) this.#noteWaiting()
    else {
      const isOut = this.#sendPending()
      this.#noteWaiting()
      const isNews = this.window.sequence !== this.#sequenceTold
      this.#sequenceTold = this.window.sequence
      if (isOut) sink?.handleWritten()
      else if (isNews) sink?.handleSent()
      // With its own window shut this stream can still say what it has consumed; the peer may wait for just that.
      if (!isOut && !this.#offers.isOut && this.window.credit > 0) return false
    }
    if (this.#finState === 'wanted' && !this.isWaiting) {
      if (!this.#sendFin()) return false
      this.#stream.sink?.handleShutdown()
    }
    return true
  }

  /**
   * The program has closed. Unless it is a reset, a write that is not out goes out all the same: TCP's kernel would have it.
   * Of one that is too large for that goes what the peer was offered.
   */
  close(isReset: boolean): void {
    const { length } = this.pending
    const { streams } = this.#stream.channel
    const kept = length <= LINGER_MAX ? length : this.window.offered
    const fits = kept > 0 || length === 0
    const mayStay = !isReset && this.isWaiting && fits && streams.lingering + kept <= CHANNEL_LINGER_MAX
    if (mayStay && this.pending.own(kept)) {
      this.#lingering = kept
      streams.lingering += kept
    } else {
      this.clear()
    }
    this.#offers.revoke()
  }

  /**
   * Nothing more goes out, and no FIN either, as the CLOSE ends this direction too. What is on offer stays registered until the
   * peer has done with it.
   */
  clear(): void {
    if (this.#finState === 'wanted') this.#finState = 'sent'
    this.pending.clear()
    this.#held.clear()
    this.#endLingering()
  }

  /** Nothing of a socket that has closed is still to be sent. */
  #endLingering(): void {
    this.#stream.channel.streams.lingering -= this.#lingering
    this.#lingering = 0
  }

  /** The peer fetches nothing more. */
  dropOffer(): void {
    this.#offers.drop()
    this.#sink.drop()
  }

  /** Sends what is pending as far as it goes, many small chunks in one message; true if nothing is left. */
  #sendPending(): boolean {
    const { pending } = this
    const { channel } = this.#stream
    if (!this.#stream.handshake.maySend || !this.flushHeld()) return false
    while (pending.length > 0) {
      if (this.#offers.isOut) return false
      if (!pending.secure(1)) return this.#fail()
      if (this.#sink.isWanted) {
        if (!this.#sink.write()) return false
        continue
      }
      if (this.#offers.isWanted && this.#stream.handshake.isAnswered && this.#offers.send()) return false
      const length = Math.min(pending.length, this.#segmentMax, this.window.credit)
      if (length <= 0) return false
      if (!pending.secure(length)) return this.#fail()
      const at = this.#reserve(length, this.#flags)
      if (at < 0) {
        channel.scheduleSend(this.#stream)
        return false
      }
      pending.copyTo(channel.channel.sendBytes, at, length)
      this.#commit(length)
      this.#offers.noteCopied(length)
    }
    pending.clear()
    this.#endLingering()
    return true
  }

  /** The memory of what is pending is gone: nothing of it goes out any more. */
  #fail(): false {
    this.pending.clear()
    this.#stream.fail('EFAULT', 'write', undefined)
    this.#stream.channel.deliveries.schedule(this.#stream)
    return false
  }

  /** One message of `chunk`, from `offset` on; returns its length, 0 if the window is shut, -1 if there is no room. */
  #sendPart(chunk: Uint8Array, offset: number): number {
    const { channel } = this.#stream
    const length = Math.min(chunk.length - offset, channel.segmentMax, this.window.credit)
    if (length <= 0) return 0
    const at = this.#reserve(length)
    if (at < 0) return -1
    copyBytes(chunk, offset, channel.channel.sendBytes, at, length)
    this.#commit(length)
    return length
  }

  get #segmentMax(): number {
    const { segmentMax, channel } = this.#stream.channel
    const whole = segmentMax + FRAMING_MAX
    return this.#isFramed && this.pending.length <= whole && whole <= channel.mediumMax ? whole : segmentMax
  }

  #reserve(length: number, flags = 0): number {
    const { channel, peerId, receiving } = this.#stream
    return reserveData(channel.channel, peerId, this.window.sequence, receiving.consumed, length, flags)
  }

  #commit(length: number): void {
    const { channel, receiving, counts } = this.#stream
    channel.channel.commit(length)
    receiving.noteConsumedSent()
    this.window.advance(length)
    // A sink stands for the place before. It would stand for one 4 GiB on, too.
    this.#sink.drop()
    counts.sent(length)
  }

  /** For the status page. What goes out at once never gets here. */
  #noteWaiting(): void {
    this.#stream.counts.waiting(this.#held.length + this.pending.length)
  }

  #sendFin(): boolean {
    const { channel, peerId, receiving } = this.#stream
    if (this.isWaiting || !this.#stream.handshake.maySend || !this.flushHeld()) return false
    if (!sendFin(channel.channel, peerId, this.window.sequence, receiving.consumed)) {
      channel.scheduleSend(this.#stream)
      return false
    }
    receiving.noteConsumedSent()
    this.#finState = 'sent'
    return true
  }
}
