/**
 * A bad network on purpose: one end of a connection whose sent frames meet the faults that were asked for. The frame is
 * built in memory of the wrapper's own, and `commit` decides its fate:
 *
 *   commit --- lost
 *      |                       later frames have passed,
 *      |                       or enough polls, or its time
 *      +------> held ------------------------+
 *      |        (reordered, delayed)         v
 *      +--------------------------------> in line ------> the inner queue
 *                                         (a stall, or the inner queue is full)
 *
 * What happens depends on the seed and on the calls only; when it happens depends on the clock as well.
 */
import { copyBytes } from '../copy.ts'
import type { Capabilities, FrameSink, VirtualInterface } from '../nic.ts'
import { performance } from '../performance.ts'
import { clearTimeout, setTimeout } from '../real-time.ts'
import { BROKEN, CLOSED, NO_RESOURCE } from '../status.ts'
import { ForwardingInterface } from '../wrapper/forwarding-interface.ts'
import type { Faults } from './fault-options.ts'
import { FaultRandom } from './fault-random.ts'

/** Frames under way within the wrapper; beyond it `reserve` refuses. The last commit may add two more. */
const UNDER_WAY_MAX = 1024
const UNDER_WAY_BYTES_MAX = 4 << 20
/** Polls after which a reordered frame goes on, whether or not others have passed it. */
const FLUSH_POLLS = 16
/** How often an armed interface checks the frames that it holds back. */
const RELEASE_INTERVAL_MS = 1
const FLIPS_MAX = 4

const NOWHERE: FrameSink = { handleFrame: () => {} }

/** What has happened to the frames that were sent. */
export interface FaultCounts {
  sent: number
  lost: number
  duplicated: number
  reordered: number
  corrupted: number
  delayed: number
  stalls: number
}

interface DelayedFrame {
  readonly bytes: Uint8Array
  readonly dueMs: number
  /** Later frames that must pass it first. */
  passesLeft: number
  pollsLeft: number
}

export class FaultInterface extends ForwardingInterface {
  readonly counts: FaultCounts = {
    sent: 0,
    lost: 0,
    duplicated: 0,
    reordered: 0,
    corrupted: 0,
    delayed: 0,
    stalls: 0,
  }
  readonly #faults: Faults
  readonly #random: FaultRandom
  /** Where a frame is built. */
  #bytes: Uint8Array
  #words: Int32Array
  readonly #delayed: DelayedFrame[] = []
  /** Frames that go next, in order. */
  readonly #line: Uint8Array[] = []
  #bytesUnderWay = 0
  #stalledUntilMs = 0
  #isDead = false
  #listener: () => void = () => {}
  #roomWanted = 0
  #isArmed = false
  #isRef = false
  #timer: NodeJS.Timeout | undefined

  constructor(inner: VirtualInterface, faults: Faults) {
    super(inner, `fault:${inner.driver}`, capabilitiesUnder(faults, inner.capabilities))
    const memory = new ArrayBuffer((inner.capabilities.frameMax + 7) & ~7)
    this.#bytes = new Uint8Array(memory)
    this.#words = new Int32Array(memory)
    this.#faults = faults
    this.#random = new FaultRandom(faults.seed)
    inner.setDoorbell(() => this.#ring())
  }

  override get sendBytes(): Uint8Array {
    return this.#bytes
  }

  override get sendWords(): Int32Array {
    return this.#words
  }

  override reserve(length: number): number {
    const { frameMax } = this.capabilities
    if (length > frameMax) throw new RangeError(`a frame of ${length} bytes; the most is ${frameMax}`)
    if (this.hasRoom(length)) return 0
    if (this.state === 'open') return NO_RESOURCE
    return this.state === 'broken' ? BROKEN : CLOSED
  }

  override hasRoom(length: number): boolean {
    // A dead interface accepts every frame and drops it.
    return this.#isDead ? this.state === 'open' : !this.#isFull() && this.inner.hasRoom(length)
  }

  override commit(length: number): void {
    const { stall, loss, duplication, deathAfter } = this.#faults
    if (this.counts.sent >= deathAfter) this.#die()
    if (this.#isDead) return
    this.counts.sent++
    if (this.#strikes(stall)) this.#beginStall()
    if (this.#strikes(loss)) {
      this.counts.lost++
      return
    }
    this.#send(length)
    if (this.#strikes(duplication)) {
      this.counts.duplicated++
      this.#send(length)
    }
    // An armed interface is not polled.
    if (this.#isArmed && this.#hasFrames()) this.#startTimer()
  }

  /** Nothing was reserved in the inner queue. */
  override cancel(): void {}

  override poll(sink: FrameSink, limit: number): number {
    this.#passTime(1)
    if (!this.#isDead) return this.inner.poll(sink, limit)
    return Math.min(0, this.inner.poll(NOWHERE, limit))
  }

  override arm(forRoom: number): boolean {
    this.#passTime(1)
    if (!this.inner.arm(this.#innerRoomWanted(forRoom))) return false
    this.#roomWanted = forRoom
    this.#isArmed = true
    if (this.#hasFrames()) this.#startTimer()
    return true
  }

  override disarm(): void {
    this.#isArmed = false
    this.#stopTimer()
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

  /** Frames under way still arrive, as far as the inner queue has room. */
  override close(): void {
    this.#stopTimer()
    this.#stalledUntilMs = 0
    this.#line.push(...this.#delayed.splice(0).map(frame => frame.bytes))
    this.#advanceLine()
    this.#die()
    this.#bytes = new Uint8Array(0)
    this.#words = new Int32Array(0)
    this.inner.close()
  }

  /** True if a fault of this rate strikes now. A rate of 0 uses up no random number. */
  #strikes(rate: number): boolean {
    return rate > 0 && this.#random.chance(rate)
  }

  /** Sends one copy of the frame that was built. */
  #send(length: number): void {
    const { corruption, reordering, reorderDistance, delay } = this.#faults
    let bytes = this.#bytes
    if (length > 0 && this.#strikes(corruption)) {
      this.counts.corrupted++
      bytes = bytes.slice(0, length)
      this.#flipBits(bytes)
    }
    const isReordered = this.#strikes(reordering)
    const isDelayed = this.#strikes(delay)
    if (!isReordered && !isDelayed) {
      this.#pass(bytes, length)
      this.#countPass()
      return
    }
    if (isReordered) this.counts.reordered++
    if (isDelayed) this.counts.delayed++
    this.#bytesUnderWay += length
    this.#delayed.push({
      bytes: bytes === this.#bytes ? bytes.slice(0, length) : bytes,
      dueMs: isDelayed ? performance.now() + this.#drawDelay() : 0,
      passesLeft: isReordered ? this.#random.within(1, reorderDistance) : 0,
      pollsLeft: FLUSH_POLLS,
    })
  }

  #drawDelay(): number {
    const [min, max] = this.#faults.delayMs
    return min + (this.#random.word() / 2 ** 32) * (max - min)
  }

  /** Each step forward is at most a quarter of the frame, so that no bit is flipped back. */
  #flipBits(bytes: Uint8Array): void {
    const bitCount = 8 * bytes.length
    let bit = this.#random.within(0, bitCount - 1)
    for (let flips = this.#random.within(1, FLIPS_MAX); flips > 0; flips--) {
      bytes[bit >> 3] = (bytes[bit >> 3] as number) ^ (1 << (bit & 7))
      bit = (bit + this.#random.within(1, bitCount / FLIPS_MAX)) % bitCount
    }
  }

  #beginStall(): void {
    if (this.#isStalled()) return
    this.counts.stalls++
    this.#stalledUntilMs = performance.now() + this.#faults.stallMs
  }

  #isStalled(): boolean {
    if (this.#stalledUntilMs === 0) return false
    if (performance.now() < this.#stalledUntilMs) return true
    this.#stalledUntilMs = 0
    return false
  }

  /** Sends to the inner queue, or to the end of the line before it. */
  #pass(bytes: Uint8Array, length: number): void {
    if (this.#line.length > 0) this.#advanceLine()
    if (this.#line.length === 0 && !this.#isStalled() && this.#forward(bytes, length)) return
    this.#bytesUnderWay += length
    this.#line.push(bytes === this.#bytes ? bytes.slice(0, length) : bytes)
  }

  #forward(bytes: Uint8Array, length: number): boolean {
    const at = this.inner.reserve(length)
    if (at < 0) return false
    copyBytes(bytes, 0, this.inner.sendBytes, at, length)
    this.inner.commit(length)
    return true
  }

  #advanceLine(): void {
    if (this.#isStalled()) return
    for (;;) {
      const frame = this.#line[0]
      if (frame === undefined || !this.#forward(frame, frame.length)) return
      this.#bytesUnderWay -= frame.length
      this.#line.shift()
    }
  }

  /** Called when a frame has passed all that are held back. */
  #countPass(): void {
    if (this.#delayed.length === 0) return
    for (const frame of this.#delayed) frame.passesLeft--
    this.#releaseDue()
  }

  /** The work of every poll. An armed interface calls it as if it had been polled often enough. */
  #passTime(polls: number): void {
    if (this.#delayed.length > 0) {
      for (const frame of this.#delayed) {
        frame.pollsLeft -= polls
        if (frame.pollsLeft <= 0) frame.passesLeft = 0
      }
      this.#releaseDue()
    }
    if (this.#line.length > 0) this.#advanceLine()
  }

  #releaseDue(): void {
    const nowMs = performance.now()
    let kept = 0
    for (const frame of this.#delayed) {
      if (frame.passesLeft > 0 || frame.dueMs > nowMs) {
        this.#delayed[kept++] = frame
      } else {
        this.#bytesUnderWay -= frame.bytes.length
        this.#pass(frame.bytes, frame.bytes.length)
      }
    }
    this.#delayed.length = kept
  }

  #die(): void {
    this.#isDead = true
    this.#delayed.length = 0
    this.#line.length = 0
    this.#bytesUnderWay = 0
  }

  #hasFrames(): boolean {
    return this.#delayed.length + this.#line.length > 0
  }

  #isFull(): boolean {
    return (
      this.#delayed.length + this.#line.length >= UNDER_WAY_MAX || this.#bytesUnderWay >= UNDER_WAY_BYTES_MAX
    )
  }

  /**
   * The room of the inner queue that a sender waits for. Behind a stall, or with a full wrapper, the timer wakes it
   * instead.
   */
  #innerRoomWanted(forRoom: number): number {
    const first = this.#line[0]
    if (first !== undefined && !this.#isStalled()) return Math.max(first.length, forRoom)
    return this.#isFull() ? 0 : forRoom
  }

  readonly #tick = (): void => {
    this.#timer = undefined
    this.#passTime(FLUSH_POLLS)
    if (this.#hasFrames()) this.#startTimer()
    if (this.#roomWanted > 0 && this.hasRoom(this.#roomWanted)) {
      this.inner.disarm()
      this.#ring()
    }
  }

  #startTimer(): void {
    this.#timer ??= setTimeout(this.#tick, RELEASE_INTERVAL_MS)
    if (!this.#isRef) this.#timer.unref()
  }

  #stopTimer(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#roomWanted = 0
  }

  #ring(): void {
    this.#stopTimer()
    this.#listener()
  }
}

function capabilitiesUnder(faults: Faults, inner: Capabilities): Capabilities {
  const { loss, duplication, reordering, corruption, delay, deathAfter } = faults
  return {
    ...inner,
    isIntact: inner.isIntact === true && corruption === 0,
    ordered: inner.ordered && reordering === 0 && delay === 0,
    reliable:
      inner.reliable && loss === 0 && duplication === 0 && corruption === 0 && deathAfter === Infinity,
  }
}
