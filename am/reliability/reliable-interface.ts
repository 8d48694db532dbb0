/**
 * Every frame exactly once and in order, over an interface that loses, doubles, reorders and damages them.
 *
 *   sending    reserve, commit --> retention --> inner frame            kept until ACK; sent again if it is missed
 *   receiving  inner frame --> landing (copied and checked) --> sink                       if it is its turn
 *                                                 \--> reorder buffer --> landing --> sink   once it is
 *
 * Acknowledged means handed over: a peer that does not poll stops its sender by the window, as a full ring does. SACK
 * says what has come meanwhile, which is not sent again.
 */
import type { Clock, Timer } from '../../nic/clock.ts'
import {
  ablation,
  BROKEN,
  type Capabilities,
  CLOSED,
  ForwardingInterface,
  type FrameSink,
  type InterfaceState,
  NicError,
  NO_RESOURCE,
  type VirtualInterface,
} from '../../nic/index.ts'
import { Receiver } from './receiver.ts'
import {
  HEADER_SIZE,
  KIND_ACK,
  KIND_MASK,
  KIND_PART,
  KIND_PROBE,
  KIND_WORD,
  WINDOW_FRAMES,
} from './reliability-layout.ts'
import { checkOptions, type Limits, type ReliabilityOptions } from './reliability-options.ts'
import { ReliabilityStats } from './reliability-stats.ts'
import { Sender } from './sender.ts'

/** Frames received beyond those that may be handed over: acknowledgements, duplicates, early frames. */
const RECEIVE_MAX = 64
/** Polls with frames after which the clock is read all the same. */
const UNTIMED_POLLS_MAX = 16
/** Largest share of the retention that a frame may take, so that it fits once frames are acknowledged, skip included. */
const FRAME_SHARE = 1 / 4

export class ReliableInterface extends ForwardingInterface implements FrameSink {
  readonly stats = new ReliabilityStats()
  readonly #sender: Sender
  readonly #receiver: Receiver
  readonly #peerTimeoutMs: number
  readonly #clock: Clock
  #ownState: InterfaceState = 'open'
  #ownFailure: NicError | undefined
  #isPolling = false
  #untimedPolls = 0
  #listener: () => void = () => {}
  #isArmed = false
  #roomWanted = 0
  #isRef = false
  #timer: Timer | undefined

  /** Owns `inner` from now on. The other end needs one as well, with the same options. */
  constructor(inner: VirtualInterface, options: ReliabilityOptions = {}) {
    const { retentionBytes, peerTimeoutMs, firstSequence, clock } = checkOptions(options)
    const limits = limitsOver(inner.capabilities, retentionBytes)
    super(inner, inner.driver, capabilitiesOver(inner.capabilities, limits))
    const first = firstSequence | 0
    this.#receiver = new Receiver(this.stats, limits, first, inner.capabilities.isIntact === true)
    this.#sender = new Sender(inner, this.#receiver, this.stats, limits, first, clock)
    this.#peerTimeoutMs = peerTimeoutMs
    this.#clock = clock
    inner.setDoorbell(this.#answerDoorbell)
  }

  override get state(): InterfaceState {
    return this.#ownState === 'open' ? this.inner.state : this.#ownState
  }

  override get failure(): NicError | undefined {
    return this.#ownFailure ?? this.inner.failure
  }

  override get sendBytes(): Uint8Array {
    return this.#sender.retention.bytes
  }

  override get sendWords(): Int32Array {
    return this.#sender.retention.words
  }

  override get receiveWords(): Int32Array {
    return this.#receiver.landingWords
  }

  /** Frames that the peer has not handed over, as far as is known here. */
  get unacknowledged(): number {
    return this.#sender.unacknowledged
  }

  /** Those of them that are not known to have arrived. */
  get outstanding(): number {
    return this.#sender.outstanding
  }

  override reserve(length: number): number {
    const { frameMax } = this.capabilities
    if (length > frameMax) throw new RangeError(`a frame of ${length} bytes; the most is ${frameMax}`)
    if (this.hasRoom(length)) return this.#sender.retention.reserve(length)
    return this.state === 'open' ? NO_RESOURCE : this.#refusal()
  }

  override commit(length: number): void {
    const { retention } = this.#sender
    const before = retention.next
    retention.commit(length)
    this.stats.sent += (retention.next - before) | 0
    this.#sender.sendUnsent()
    if (this.#isArmed) this.#startTimer()
  }

  /** A second `reserve` replaces the first. */
  override cancel(): void {}

  override hasRoom(length: number): boolean {
    if (this.state !== 'open') return false
    if (this.#sender.retention.hasRoom(length)) return true
    // Acknowledgements count at once, as the peer's progress does with a ring.
    this.#receiveAcks()
    return this.#sender.retention.hasRoom(length)
  }

  /** With a limit of 0 no frame is handed over, and everything else is done. */
  override poll(sink: FrameSink, limit: number): number {
    if (this.state !== 'open') return this.#refusal()
    if (this.#isPolling) throw new Error('poll was called from within a frame handler')
    const before = this.#receiver.handedOver
    let received = 0
    this.#isPolling = true
    try {
      this.#receiver.begin(sink, limit)
      received = this.#receive(limit)
    } finally {
      this.#isPolling = false
      this.#receiver.end()
      this.#work(received)
    }
    const delivered = this.#receiver.handedOver - before
    return delivered === 0 && this.#isBroken() ? BROKEN : delivered
  }

  override arm(forRoom: number): boolean {
    if (forRoom > 0 && this.hasRoom(forRoom)) return false
    if (!this.#sleep()) return false
    this.#isArmed = true
    this.#roomWanted = forRoom
    return true
  }

  override disarm(): void {
    this.#isArmed = false
    this.#roomWanted = 0
    this.#clock.clearTimeout(this.#timer)
    this.#timer = undefined
    this.inner.disarm()
  }

  override setDoorbell(listener: () => void): void {
    this.#listener = listener
  }

  override ref(): void {
    this.#isRef = true
    this.#timer?.ref()
    this.inner.ref()
  }

  override unref(): void {
    this.#isRef = false
    this.#timer?.unref()
    this.inner.unref()
  }

  override close(): void {
    if (this.#ownState === 'closed') return
    this.#ownState = 'closed'
    this.disarm()
    this.#sender.retention.close()
    this.#receiver.close()
    this.inner.close()
  }

  /** The sink of the inner interface: one frame of the peer, or of a stranger in its place. */
  handleFrame(_bytes: Uint8Array, offset: number, length: number): void {
    if (this.#ownState !== 'open') return
    const receiver = this.#receiver
    if (!receiver.land(this.inner.receiveWords, offset >> 2, length)) {
      this.stats.damaged++
      return
    }
    const kind = (receiver.header[KIND_WORD] as number) & KIND_MASK
    if (kind > KIND_PART || !this.#sender.handleAcknowledgement(receiver.header)) {
      this.stats.refused++
      return
    }
    if (kind === KIND_ACK) return
    if (kind === KIND_PROBE) return receiver.handleProbe()
    if (!receiver.handleData(length - HEADER_SIZE)) this.stats.refused++
    // Before the poll ends: the peer may be waiting for room meanwhile.
    if (receiver.isAckOverdue()) this.#sender.sendAck()
  }

  /** Receives frames from below while they may be handed over; returns how many there were. */
  #receive(limit: number): number {
    if (limit <= 0) return this.inner.poll(this, RECEIVE_MAX)
    let received = 0
    while (this.#receiver.left > 0 && received < limit + RECEIVE_MAX) {
      const asked = this.#receiver.left
      const count = this.inner.poll(this, asked)
      received += Math.max(0, count)
      if (count < asked) break
    }
    return received
  }

  /** Receives acknowledgements, and frames that come with them, outside a poll. */
  #receiveAcks(): void {
    if (this.#isPolling) return
    this.#receiveInner(RECEIVE_MAX)
    this.#sender.sendUnsent()
    this.#sendAcks(0)
    // A frame for an armed owner has been received here: wake the owner.
    if (this.#isArmed && this.#receiver.isReady) this.#ringIn(0)
  }

  /** Receives up to `limit` frames from below and hands over none. */
  #receiveInner(limit: number): number {
    this.#isPolling = true
    try {
      return this.inner.poll(this, limit)
    } finally {
      this.#isPolling = false
    }
  }

  /** The rest of a poll that has received `received` frames. */
  #work(received: number): void {
    if (this.state !== 'open') return
    this.#sender.sendUnsent()
    this.#sendAcks(0)
    if (this.#sender.unacknowledged === 0 && !this.#receiver.owesAck) return
    // While frames come the clock need not be read.
    if (received > 0 && !this.#sender.wantsTime && ++this.#untimedPolls < UNTIMED_POLLS_MAX) return
    this.#keepTime()
  }

  #keepTime(): void {
    this.#untimedPolls = 0
    const nowMs = this.#clock.now()
    this.#receiver.keepTime(nowMs)
    this.#sendAcks(nowMs)
    if (this.#sender.keepTime(nowMs, this.#peerTimeoutMs)) return
    this.#ownState = 'broken'
    this.#ownFailure = new NicError(
      'ERR_NIC_PEER_LOST',
      `the peer sent nothing for ${this.#peerTimeoutMs} ms while frames were unacknowledged`,
    )
  }

  #sendAcks(nowMs: number): void {
    while (this.#receiver.isAckUrgent(nowMs) && this.#sender.sendAck()) {}
  }

  /** Sends every acknowledgement that is owed before sleep. False if there is work to do instead. */
  #sleep(): boolean {
    this.#work(0)
    if (this.state !== 'open' || this.#receiver.isReady) return false
    if (this.#receiver.owesAck) this.#sender.sendAck()
    const ackRoom = this.#receiver.owesAck ? HEADER_SIZE : 0
    if (!this.inner.arm(this.#sender.roomWanted || ackRoom)) return false
    this.#startTimer()
    return true
  }

  /** Wakes this interface, but not its owner, when a frame must be sent again. */
  #startTimer(): void {
    if (this.#timer !== undefined || this.#sender.unacknowledged === 0) return
    if (this.#sender.deadlineMs === Number.POSITIVE_INFINITY) this.#keepTime()
    this.#ringIn(Math.max(1, Math.ceil(this.#sender.deadlineMs - this.#clock.now())))
  }

  #ringIn(waitMs: number): void {
    this.#clock.clearTimeout(this.#timer)
    this.#timer = this.#clock.setTimeout(this.#answerDoorbell, waitMs)
    if (!this.#isRef) this.#timer.unref()
  }

  /**
   * The peer's doorbell or the timer rang. The owner is woken only for a frame, for the room that it waits for, or for
   * the end. One frame is enough to know; the others stay below until the owner polls.
   */
  readonly #answerDoorbell = (): void => {
    this.#clock.clearTimeout(this.#timer)
    this.#timer = undefined
    if (!this.#isArmed || this.#ownState !== 'open') return
    for (let count = 0; count < RECEIVE_MAX && !this.#receiver.isReady; count++) {
      if (this.#receiveInner(1) <= 0) break
    }
    const hasRoom = this.#roomWanted > 0 && this.#sender.retention.hasRoom(this.#roomWanted)
    if (!hasRoom && this.#sleep()) return
    this.disarm()
    this.#listener()
  }

  #isBroken(): boolean {
    return this.state === 'broken'
  }

  #refusal(): typeof BROKEN | typeof CLOSED {
    return this.#isBroken() ? BROKEN : CLOSED
  }
}

/** Both ends compute the same. */
function limitsOver(inner: Capabilities, retentionBytes: number): Limits {
  const share = retentionBytes * FRAME_SHARE
  const partMax = Math.min((inner.frameMax & ~7) - HEADER_SIZE, share)
  // "Credits N with 2N descriptors" (EMP 2002): acknowledgements and frames that are sent again need some, too.
  const posted = (inner.receiveDescriptors ?? 2 * WINDOW_FRAMES) >> 1
  const window = Math.min(WINDOW_FRAMES, posted, ablation('window') ?? posted)
  const frameMax = Math.min(share, partMax * Math.max(1, window >> 1))
  return { frameMax, partMax, window, retentionBytes }
}

function capabilitiesOver(inner: Capabilities, { frameMax, partMax }: Limits): Capabilities {
  const { receiveDescriptors: _, ...rest } = inner
  return {
    ...rest,
    ordered: true,
    reliable: true,
    frameMax,
    inlineMax: Math.min(partMax, Math.max(0, inner.inlineMax - HEADER_SIZE)),
  }
}
