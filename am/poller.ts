/**
 * Progress by the event loop: fast when busy, silent when idle.
 *
 * A channel is *hot* while it moves: it is polled once in each turn of the event loop, so that timers and other I/O
 * have their turns, with a bounded number of messages each time. When nothing has come for its spin time its doorbell is
 * armed; then, if nothing slipped in meanwhile, it is *cold* and costs nothing until the peer rings. The spin time is
 * learned: a doorbell that rings soon after arming says that spinning on would have caught it, one that does not says that
 * the spinning was wasted. A turn that found nothing offers its core to others: with more runnable threads than cores
 * (the peer may be one of them, or the garbage collector's helpers) spinning would only keep them from what we wait for.
 * Where the queue for the cores is long, there is no spinning at all (core-contention.ts).
 */
import { ablation, yieldCore } from '../nic/index.ts'
import { performance, setImmediate } from '../nic/real-time.ts'
import type { Channel } from './channel.ts'
import { CoreContention } from './core-contention.ts'
import { PollerCounts } from './poller-counts.ts'
import { WaitInPlace } from './wait-in-place.ts'

/** Messages handled per channel and turn. */
const TURN_MESSAGES_MAX = 256
/** Longest time to spin after the last activity: about what two wake-ups through the kernel cost, one on each side. */
export const SPIN_MS_MAX = 0.1
const ABLATED_SPIN_US = ablation('spin-us')
const SPIN_MS = ABLATED_SPIN_US === undefined ? SPIN_MS_MAX : ABLATED_SPIN_US / 1000
/** How fast the spin time is learned. */
const SPIN_STEPS = 8
const SPIN_MS_STEP = SPIN_MS / SPIN_STEPS

/** Runs `turn` once, in the next turn of the event loop: `setImmediate`, unless whoever is above knows better. */
export type ScheduleTurn = (turn: () => void) => void

/** Whether what a doorbell has announced may be heard while the event loop tells of the doorbell. After a yes it is. */
export type MayTurnNow = () => boolean

export class Poller {
  #scheduleTurn: ScheduleTurn = setImmediate
  #mayTurnNow: MayTurnNow = never
  readonly counts = new PollerCounts()
  readonly #hot: Channel[] = []
  /** Whose messages are handled at this moment. */
  #current: Channel | undefined
  /** Those whose handlers have thrown, which ended the turn: they wait until all the others have had theirs. */
  readonly #thrown = new Set<Channel>()
  readonly #contention = new CoreContention()
  readonly #wait = new WaitInPlace()
  #isScheduled = false

  /** Between two turns that follow each other without the event loop: is there something to do for the next? */
  awaitWork(mayWait: () => boolean): boolean {
    return SPIN_MS > 0 && this.#wait.awaitWork(this.#hot, mayWait)
  }

  add(channel: Channel): void {
    channel.spinMs = SPIN_MS
    channel.setWake(this.#heat)
    channel.end.setDoorbell(isIo => this.#answerDoorbell(channel, isIo === true))
    this.#heat(channel)
  }

  scheduleBy(scheduleTurn: ScheduleTurn, mayTurnNow: MayTurnNow): void {
    this.#scheduleTurn = scheduleTurn
    this.#mayTurnNow = mayTurnNow
  }

  remove(channel: Channel): void {
    channel.isHot = false
    if (this.#thrown.size > 0) this.#thrown.delete(channel)
    // Most have one channel only, or the last has just been pushed.
    if (this.#hot.at(-1) === channel) this.#hot.pop()
    else if (this.#hot.includes(channel)) this.#hot.splice(this.#hot.indexOf(channel), 1)
  }

  readonly #heat = (channel: Channel): void => {
    if (channel.isHot) return
    this.#add(channel)
    this.#schedule()
  }

  #add(channel: Channel): void {
    channel.isHot = true
    channel.isTouched = true
    channel.end.disarm()
    this.#hot.push(channel)
  }

  #answerDoorbell(channel: Channel, isIo: boolean): void {
    if (channel.isOver) return
    this.counts.addDoorbell()
    if (performance.now() - channel.lastActiveMs < SPIN_MS + channel.spinMs) lengthenSpin(channel)
    if (channel.isHot) return
    this.#add(channel)
    // As libuv tells of a socket, without a detour, if nobody else is to be looked at before.
    if (isIo && !this.#isScheduled && this.#mayTurnNow()) this.#turn()
    else this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#scheduleTurn(this.#turn)
  }

  readonly #turn = (): void => {
    this.#isScheduled = false
    this.counts.addTurn()
    const nowMs = performance.now()
    // Handlers may heat and remove channels: what is pushed meanwhile has its turn next time.
    let at = 0
    let left = this.#hot.length
    try {
      this.#takeAll()
      while (left > 0 && at < this.#hot.length) {
        left--
        const channel = this.#hot[at] as Channel
        const isAsleep = !this.#thrown.has(channel) && this.#advance(channel, nowMs)
        if (isAsleep) this.remove(channel)
        else if (this.#hot[at] === channel) at++
      }
      if (this.#thrown.size > 0) this.#thrown.clear()
    } finally {
      if (this.#current?.isHot) this.#thrown.add(this.#current)
      this.#current = undefined
      if (this.#hot.length > 0) this.#schedule()
    }
  }

  /**
   * As libuv asks for everything that has happened before it tells of any: what a listener sends to a socket of its own
   * process is heard in the next turn, whichever of the two channels comes first, and after the immediates. Connections are
   * told of while they are taken, to the one that accepts before the one that asks.
   */
  #takeAll(): void {
    this.#takeEach(true)
    this.#takeEach(false)
  }

  #takeEach(isFirst: boolean): void {
    let at = 0
    let left = this.#hot.length
    while (left-- > 0 && at < this.#hot.length) {
      const channel = this.#hot[at] as Channel
      const isTaken = channel.hasHalves && channel.isFirst === isFirst && !channel.isOver
      if (isTaken && !this.#thrown.has(channel)) this.#take(channel)
      if (this.#hot[at] === channel) at++
    }
  }

  #take(channel: Channel): void {
    this.#current = channel
    channel.take(TURN_MESSAGES_MAX)
    // It is not hot any more, and nobody else will.
    if (channel.isOver) channel.tell()
    this.#current = undefined
  }

  /** One turn of one channel; true if it has gone to sleep. */
  #advance(channel: Channel, nowMs: number): boolean {
    const wasTouched = channel.isTouched
    this.#current = channel
    const count = channel.hasHalves ? channel.tell() : channel.progress(TURN_MESSAGES_MAX)
    this.#current = undefined
    if (channel.isOver) return true
    const isActive = count > 0 || wasTouched || channel.isTouched
    if (count > 0) {
      this.counts.addMessages(count)
      lengthenSpin(channel)
    }
    if (isActive) channel.lastActiveMs = nowMs
    else this.counts.addEmptyTurn()
    channel.maySpin = !this.#contention.isContended(nowMs)
    if (channel.maySpin) {
      if (isActive) return false
      if (nowMs - channel.lastActiveMs < channel.spinMs) {
        yieldCore()
        return false
      }
    } else if (channel.isTouched) return false
    if (!channel.arm()) return false
    if (channel.maySpin) shortenSpin(channel)
    this.counts.addSleep()
    return true
  }
}

function never(): boolean {
  return false
}

function lengthenSpin(channel: Channel): void {
  channel.spinMs = Math.min(SPIN_MS, channel.spinMs + SPIN_MS_STEP)
}

function shortenSpin(channel: Channel): void {
  channel.spinMs = Math.max(SPIN_MS_STEP, channel.spinMs - SPIN_MS_STEP)
}
