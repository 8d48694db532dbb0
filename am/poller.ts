/**
 * Progress by the event loop: fast when busy, silent when idle.
 *
 * A channel is *hot* while it moves: it is polled once in each turn of the event loop, so that timers and other I/O run between
 * turns. Where the recent past says that spinning pays (spin-rule.ts), a hot channel is polled on for a while after its last
 * message; then, or at once where it does not pay, its doorbell is armed. If nothing slipped in meanwhile the channel is *cold*
 * and costs nothing until the peer rings. A turn that found nothing offers its core to other threads: the peer may be one of
 * them, or the garbage collector's helpers.
 *
 * A turn is short, whatever peers send (turn-budget.ts). Channels that found no place in a turn come first in the next.
 */
import { ablation, yieldCore } from '../nic/index.ts'
import { performance, setImmediate } from '../nic/real-time.ts'
import type { Channel } from './channel.ts'
import { PollerCounts } from './poller-counts.ts'
import { SPIN_MS_MAX, SpinRule } from './spin-rule.ts'
import { TurnBudget } from './turn-budget.ts'
import { WaitInPlace } from './wait-in-place.ts'

const ABLATED_SPIN_US = ablation('spin-us')
const SPIN_MS = ABLATED_SPIN_US === undefined ? SPIN_MS_MAX : ABLATED_SPIN_US / 1000

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
  readonly #budget = new TurnBudget()
  /** The first channel that this turn had no time for. */
  #unserved: Channel | undefined
  readonly #spin = new SpinRule()
  /** What this turn has found. */
  #hasArrived = false
  #hasMoved = false
  #maySpin = true
  readonly #wait = new WaitInPlace()
  #isScheduled = false

  /** Between two turns that follow each other without the event loop: is there something to do for the next? */
  awaitWork(mayWait: () => boolean): boolean {
    return SPIN_MS > 0 && this.#wait.awaitWork(this.#hot, mayWait)
  }

  add(channel: Channel): void {
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
    this.#budget.begin(nowMs)
    this.#unserved = undefined
    this.#hasArrived = false
    this.#hasMoved = false
    this.#maySpin = SPIN_MS > 0 && this.#spin.maySpin(nowMs)
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
      this.#endTurn(nowMs)
      if (this.#hot.length > 0) this.#schedule()
    }
  }

  #endTurn(nowMs: number): void {
    if (this.#hasArrived) this.#spin.noteArrival(nowMs)
    else if (this.#maySpin && !this.#hasMoved) {
      if (this.#hot.length === 0) this.#spin.noteVain()
      else yieldCore()
    }
    this.#budget.end()
    if (this.#unserved === undefined) return
    const at = this.#hot.indexOf(this.#unserved)
    if (at > 0) this.#hot.push(...this.#hot.splice(0, at))
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
    this.#serve(channel)
    // It is not hot any more, and nobody else will.
    if (channel.isOver) channel.tell()
    this.#current = undefined
  }

  /** Handles what has come for `channel`, as far as this turn's budget goes; returns how many messages. */
  #serve(channel: Channel): number {
    const max = this.#budget.channelMessages
    let served = 0
    for (;;) {
      const limit = channel.isOwn ? max - served : this.#budget.nextLimit(max - served)
      if (limit === 0) {
        this.#unserved ??= channel
        return served
      }
      const count = channel.hasHalves ? channel.take(limit) : channel.progress(limit)
      if (count > 0) served += count
      this.#budget.spend(count > 0 ? count : 0, channel.takeBytes())
      if (count < limit || served === max || channel.isOver) return served
    }
  }

  /** One turn of one channel; true if it has gone to sleep. */
  #advance(channel: Channel, nowMs: number): boolean {
    const wasTouched = channel.isTouched
    this.#current = channel
    const count = channel.hasHalves ? channel.tell() : this.#serve(channel)
    this.#current = undefined
    if (channel.isOver) return true
    const isActive = count > 0 || wasTouched || channel.isTouched
    if (count > 0) {
      this.counts.addMessages(count)
      this.#hasArrived = true
    }
    if (isActive) {
      channel.lastActiveMs = nowMs
      this.#hasMoved = true
    } else this.counts.addEmptyTurn()
    channel.maySpin = this.#maySpin
    // There may be more than this turn had time for.
    if (this.#unserved !== undefined) return false
    if (this.#maySpin && (isActive || nowMs - channel.lastActiveMs < SPIN_MS)) return false
    if (channel.isTouched || !channel.arm()) return false
    this.counts.addSleep()
    return true
  }
}

function never(): boolean {
  return false
}
