/**
 * The sending half of a stream: what a program writes, until it is sent or the peer has fetched it, and the FIN behind it.
 *
 * A write is sent before `write` returns, as far as the send queue and the peer's window go. What is left is copied, so that the
 * program may use its memory again. As much of it as fits into the peer's window counts as written, as it does once a kernel has
 * it: it goes out whatever the program does next. What is beyond the window waits, and so does the program's callback.
 */
import { copyBytes } from '../../nic/index.ts'
import { SendWindow } from './byte-windows.ts'
import { PendingChunks } from './pending-chunks.ts'
import type { Stream } from './stream.ts'
import { FRAMING_MAX, WINDOW } from './stream-layout.ts'
import { reserveData, sendFin } from './stream-messages.ts'
import { isOverBudget, noteKept } from './unread-budget.ts'
import { ChunkOffers } from './zcopy/chunk-offers.ts'
import { PeerSink } from './zcopy/peer-sink.ts'

export class Outgoing {
  readonly window = new SendWindow()
  readonly pending = new PendingChunks()
  /** The last write is not taken yet: its callback waits. */
  isWaiting = false
  /** How many writes there were. */
  writeCount = 0
  readonly #stream: Stream
  readonly #offers: ChunkOffers
  readonly #sink: PeerSink
  #finState: 'open' | 'wanted' | 'sent' = 'open'
  /** Where `window` was when the sink last heard of its waiting write. */
  #sequenceTold = 0
  /** Of the write that is pending. */
  #isFramed = false
  #flags = 0
  /** Bytes of this stream that the budget knows of; while there are any, the process stays alive for them. */
  #kept = 0

  constructor(stream: Stream) {
    this.#stream = stream
    this.#offers = new ChunkOffers(stream, this)
    this.#sink = new PeerSink(stream, this)
  }

  get hasUnsent(): boolean {
    return this.pending.length > 0
  }

  /**
   * Whether TCP would tell a waiting write of a reset: one that does not wait for the peer's program to read more first; if
   * nobody reads here, any that waits.
   */
  hearsOfReset(isReading = false): boolean {
    return this.isWaiting && (!isReading || this.window.credit > 0)
  }

  /** Whether more was written than the peer had `received` when it closed. To TCP that was there, unread. */
  isBeyond(received: number): boolean {
    return this.hasUnsent || ((this.window.sequence - received) | 0) > 0
  }

  /** The program has ended this direction. */
  get isFinished(): boolean {
    return this.#finState !== 'open'
  }

  /**
   * True if all of it is taken; otherwise the sink is told later. The chunks are the caller's again on return, unless it lends
   * them (`lentMin`). `isFramed`: native code has made these frames, for native code. `flags` of the messages.
   */
  write(chunks: readonly Uint8Array[], isFramed = false, flags = 0): boolean {
    const { pending } = this
    this.writeCount++
    if (this.hasUnsent) {
      pending.add(chunks, this.#stream.channel.lentMin)
    } else {
      if (chunks.length === 1 && this.#sendSmall(chunks[0] as Uint8Array, flags)) return true
      pending.set(chunks)
      this.#isFramed = isFramed
      this.#flags = flags
      // The peer fetches what is offered after this returns: a copy, unless the program lends its memory.
      if (pending.length >= this.#stream.channel.offerMin) pending.keep(this.#stream.channel.lentMin)
      if (this.#sendPending()) return true
      pending.keep(this.#stream.channel.lentMin)
    }
    this.isWaiting = !this.#isTaken()
    this.#account()
    return !this.isWaiting
  }

  /** Sends what finds window and room now, and keeps nothing of it; returns how much. Nothing may be pending. */
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
    if (this.hasUnsent) this.#stream.channel.scheduleSend(this.#stream)
    return undefined
  }

  /** The peer has fetched up to `sequence`, and wants the rest as data; returns what is wrong with that, if anything. */
  handleReadCompleted(sequence: number): string | undefined {
    const fetched = this.#offers.complete(sequence)
    if (fetched < 0) return 'an RD_COMPL that fits no offer'
    const { counts, channel } = this.#stream
    this.window.advance(fetched)
    counts.sent(fetched)
    counts.fetchedByPeer(fetched)
    // A closed socket may have dropped what was on offer.
    if (!this.hasUnsent) return undefined
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
    if (this.hasUnsent || this.isWaiting) {
      const isOut = this.#sendPending()
      this.#account()
      this.#tellProgress()
      // With its own window shut this stream can still say what it has consumed; the peer may wait for just that.
      if (!isOut && !this.#offers.isOut && this.window.credit > 0) return false
    }
    if (this.#finState === 'wanted' && !this.hasUnsent && !this.isWaiting) {
      if (!this.#sendFin()) return false
      this.#stream.sink?.handleShutdown()
    }
    return true
  }

  /**
   * The program has closed. Unless it is a reset, what was taken goes out all the same, as from a kernel's send queue; a write
   * that waits is cancelled, as libuv cancels it, but for what the peer is fetching.
   */
  close(isReset: boolean): void {
    const taken = isReset ? 0 : Math.min(this.pending.length, this.#lingerMax())
    const kept = this.#offers.isOut && !isReset ? Math.max(taken, this.window.offered) : taken
    if (kept === 0) this.clear()
    else if (kept < this.pending.length || this.pending.isLent) this.pending.cut(kept)
    this.isWaiting = false
    this.#account()
    this.#offers.revoke()
  }

  /**
   * Nothing more goes out, and no FIN either, as the CLOSE ends this direction too. What is on offer stays registered until the
   * peer has done with it.
   */
  clear(): void {
    if (this.#finState === 'wanted') this.#finState = 'sent'
    this.pending.clear()
    this.isWaiting = false
    this.#account()
  }

  /** The peer fetches nothing more. */
  dropOffer(): void {
    this.#offers.drop()
    this.#sink.drop()
  }

  /**
   * Bytes from the next one on that count as written before they are sent. Before the ACCEPT those are what the early window
   * takes: the rest lies in this process, and would be lost with it.
   */
  #room(): number {
    return isOverBudget() || this.pending.isLent ? 0 : this.window.credit
  }

  /** Bytes that still go out after the program has closed. The ACCEPT opens the window; the copies wait for it here. */
  #lingerMax(): number {
    if (this.#stream.handshake.isAnswered || this.pending.isLent) return this.#room()
    return isOverBudget() ? 0 : (WINDOW - this.window.sequence) | 0
  }

  #isTaken(): boolean {
    return this.pending.length <= this.#room()
  }

  #tellProgress(): void {
    const { sink } = this.#stream
    const isNews = this.window.sequence !== this.#sequenceTold
    this.#sequenceTold = this.window.sequence
    if (!this.isWaiting) return
    if (this.#isTaken()) {
      this.isWaiting = false
      sink?.handleWritten()
    } else if (isNews) {
      sink?.handleSent()
    }
  }

  /** Sends what is pending as far as it goes, many small chunks in one message; true if nothing is left. */
  #sendPending(): boolean {
    const { pending } = this
    const { channel, handshake } = this.#stream
    if (!handshake.maySend) return pending.length === 0
    while (pending.length > 0) {
      if (this.#offers.isOut) return false
      if (pending.isLent && !pending.isWhole()) return this.#fail()
      if (this.#sink.isWanted) {
        if (!this.#sink.write()) return false
        continue
      }
      if (this.#offers.isWanted && handshake.isAnswered && this.#offers.send()) return false
      const length = Math.min(pending.length, this.#segmentMax, this.window.credit)
      if (length <= 0) return false
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
    return true
  }

  /** The program has taken away memory that it had lent: nothing of it goes out any more. */
  #fail(): false {
    this.pending.clear()
    this.#stream.fail('EFAULT', 'write', undefined)
    this.#stream.channel.deliveries.schedule(this.#stream)
    return false
  }

  /** The way of most writes: all of `chunk` in one message; false if it must go another way. */
  #sendSmall(chunk: Uint8Array, flags: number): boolean {
    const { length } = chunk
    const { channel, handshake } = this.#stream
    if (length > channel.smallMax || length > this.window.credit || !handshake.isAnswered) return false
    const at = length === 0 ? 0 : this.#reserve(length, flags)
    if (at < 0) return false
    if (length === 0) return true
    copyBytes(chunk, 0, channel.channel.sendBytes, at, length)
    this.#commit(length)
    return true
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
    return reserveData(channel.channel, peerId, this.window.sequence, receiving.reported, length, flags)
  }

  #commit(length: number): void {
    const { channel, receiving, counts } = this.#stream
    channel.channel.commitOneWay(length)
    receiving.noteReported()
    this.window.advance(length)
    // A sink stands for the place before. It would stand for one 4 GiB on, too.
    this.#sink.drop()
    counts.sent(length)
  }

  /** What goes out at once never gets here. */
  #account(): void {
    const { length } = this.pending
    const { channel, counts } = this.#stream
    if (length === this.#kept) return
    noteKept(length - this.#kept)
    if (this.#kept === 0) channel.keepAlive()
    this.#kept = length
    if (length === 0) channel.letGo()
    counts.waiting(length)
  }

  #sendFin(): boolean {
    const { channel, peerId, receiving } = this.#stream
    if (this.hasUnsent || !this.#stream.handshake.maySend) return false
    if (!sendFin(channel.channel, peerId, this.window.sequence, receiving.reported)) {
      channel.scheduleSend(this.#stream)
      return false
    }
    receiving.noteReported()
    this.#finState = 'sent'
    return true
  }
}
