/**
 * The turn of the event loop: all that a thread does for its channels, in this order. Read this file first.
 *
 *   turn   1. poll      poll the ring of every channel, and run the handlers of the frames: sockets' handlers only copy
 *          2. deliver   resume what waited for room or window, then give the programs what has come
 *          3. sleep     arm the doorbells of the channels on which nothing has moved for a while
 *   awaitFrame          between two turns: spin on the memory that the peers' next frames will change
 *
 * All channels are polled before any owner delivers, as libuv asks for all that has happened before it reports any: what a
 * listener sends to a socket of its own process arrives in the next turn, whichever of the two channels comes first.
 *
 * A channel is *hot* while it moves: each turn polls it. Where the recent past says that spinning pays (spin-rule.ts), a hot
 * channel is polled on for `SPIN_MS` after its last message; then, or at once where spinning does not pay, its doorbell is
 * armed. A channel whose doorbell is armed is *cold*, and costs nothing until the peer rings. A turn is short whatever peers
 * send (turn-budget.ts): channels that found no room in a turn come first in the next one.
 *
 * Where the turn runs in an iteration of Node's event loop is the host's matter (fastsockets/host/io-turns.ts); without a
 * host it is an immediate.
 */
import { type Clock, realClock } from '../../nic/clock.ts'
import { ablation, atomics, yieldCore } from '../../nic/index.ts'
import type { Channel } from '../channel.ts'
import { SPIN_MS_MAX, SpinRule } from './spin-rule.ts'
import { CHANNEL_MESSAGES_MAX, TurnBudget } from './turn-budget.ts'

const ABLATED_SPIN_US = ablation('spin-us')
const SPIN_MS = ABLATED_SPIN_US === undefined ? SPIN_MS_MAX : ABLATED_SPIN_US / 1000
/** Longest wait in place. A peer that is at work answers sooner; other work of the event loop is late by as much. */
const WAIT_MS = 0.02
/** Time of a wait after which the thread yields its core, once: the peer, or a compiler's thread, may need this core. */
const YIELD_MS = 0.005
/** Looks at memory between two reads of the clock. */
const LOOKS = 16
/** With more hot channels there is no wait in place: one of them has work anyway. */
const WAITED_CHANNELS_MAX = 8
/** Most waits that are skipped after waits in vain. */
const SKIPS_MAX = 63

/** Counts of one event loop since its creation. */
export interface PollerStats {
  turns: number
  messages: number
  /** Turns of a channel without a message. */
  emptyTurns: number
  sleeps: number
  doorbells: number
}

export const POLLER_COUNTS = ['turns', 'messages', 'emptyTurns', 'sleeps', 'doorbells'] as const

const TURNS = 0
const MESSAGES = 1
const EMPTY_TURNS = 2
const SLEEPS = 3
const DOORBELLS = 4

/** Has `turn` called once, soon, by the thread's event loop. */
type ScheduleTurn = () => void
/** Whether a doorbell may run the turn within its own callback. After a yes it does. */
type MayTurnNow = () => boolean

export class EventLoop {
  /** A turn is scheduled. */
  isDue = false
  /** In the order of `POLLER_COUNTS`. */
  private counts: Float64Array = new Float64Array(POLLER_COUNTS.length)
  private scheduleTurn: ScheduleTurn = () => this.clock.setImmediate(this.runTurn)
  private mayTurnNow: MayTurnNow = () => false
  private readonly hot: Channel[] = []
  /** The channel whose handlers run now. */
  private current: Channel | undefined
  /** Channels whose handlers threw, which ended the turn: they come last in the next one. */
  private readonly thrown = new Set<Channel>()
  private readonly clock: Clock
  private readonly budget: TurnBudget
  private readonly spin: SpinRule
  /** The first channel for which this turn's budget was not enough. */
  private unserved: Channel | undefined
  /** Results of this turn. */
  private hasArrived = false
  private hasMoved = false
  private maySpin = true
  /** Waits in place that are still skipped, and how many the next wait in vain will skip. */
  private skips = 0
  private skipsNext = 0
  /** The words that the next frames of the hot channels change, during a wait. */
  private readonly waitedWords: Int32Array[] = []
  private readonly waitedAt = new Int32Array(WAITED_CHANNELS_MAX)

  constructor(clock: Clock = realClock, spin = new SpinRule()) {
    this.clock = clock
    this.budget = new TurnBudget(clock)
    this.spin = spin
  }

  turn(): void {
    this.isDue = false
    this.counts[TURNS] = (this.counts[TURNS] as number) + 1
    const { hot, budget, thrown } = this
    const nowMs = this.clock.now()
    budget.begin(nowMs)
    this.unserved = undefined
    this.hasArrived = false
    this.hasMoved = false
    this.maySpin = SPIN_MS > 0 && this.spin.maySpin(nowMs)
    let at = 0
    // Handlers may heat and remove channels. Those that are pushed during this loop wait for the next turn.
    let left = hot.length
    try {
      // Connections are reported by their handlers: to the end that accepts before the end that asks.
      if (left > 1 || hot[0]?.isFirst === true) this.poll(true)
      this.poll(false)
      while (left > 0 && at < hot.length) {
        left--
        const channel = hot[at] as Channel
        if (!thrown.has(channel) && this.deliver(channel, nowMs)) this.remove(channel)
        else if (hot[at] === channel) at++
      }
      if (thrown.size > 0) thrown.clear()
    } finally {
      if (this.current?.isHot) thrown.add(this.current)
      this.current = undefined
      this.endTurn(nowMs)
      if (hot.length > 0) this.schedule()
    }
  }

  /** Polls the channels that accept (`isFirst`), or all others. */
  private poll(isFirst: boolean): void {
    const { hot } = this
    let left = hot.length
    for (let at = 0; left > 0 && at < hot.length; left--) {
      const channel = hot[at] as Channel
      if (
        channel.hasHalves &&
        channel.isFirst === isFirst &&
        channel.state === 'open' &&
        !this.thrown.has(channel)
      ) {
        this.current = channel
        this.serve(channel)
        // A closed channel is not hot: no further turn delivers for it.
        if (channel.state !== 'open' && channel.isOver) channel.deliver()
        this.current = undefined
      }
      if (hot[at] === channel) at++
    }
  }

  /** Handles what has come for `channel`, as far as the turn's budget goes; returns how many messages. */
  private serve(channel: Channel): number {
    const { budget } = this
    let served = 0
    for (;;) {
      const left = CHANNEL_MESSAGES_MAX - served
      const limit = channel.isOwn ? left : budget.nextLimit(left)
      if (limit === 0) {
        this.unserved ??= channel
        return served
      }
      const count = channel.hasHalves ? channel.poll(limit) : channel.progress(limit)
      budget.bytesLeft -= channel.polledBytes
      channel.polledBytes = 0
      if (count > 0) {
        served += count
        budget.messagesLeft -= count
      }
      if (count < limit || served === CHANNEL_MESSAGES_MAX) return served
      if (channel.state !== 'open' && channel.isOver) return served
    }
  }

  /** One channel's second half of the turn; true if its doorbell is armed. */
  private deliver(channel: Channel, nowMs: number): boolean {
    const wasActive = channel.isTouched || channel.hasSent
    this.current = channel
    const count = channel.hasHalves ? channel.deliver() : this.serve(channel)
    this.current = undefined
    if (channel.state !== 'open' && channel.isOver) return true
    const isActive = count > 0 || wasActive || channel.isTouched || channel.hasSent
    channel.hasSent = false
    const { counts } = this
    if (count > 0) {
      counts[MESSAGES] = (counts[MESSAGES] as number) + count
      this.hasArrived = true
    }
    if (isActive) {
      channel.lastActiveMs = nowMs
      this.hasMoved = true
    } else counts[EMPTY_TURNS] = (counts[EMPTY_TURNS] as number) + 1
    channel.maySpin = this.maySpin
    // There may be more than this turn had time for.
    if (this.unserved !== undefined) return false
    const spinsUntilMs = Math.max(channel.lastActiveMs + SPIN_MS, channel.peerCopiesUntilMs)
    if (this.maySpin && (isActive || nowMs < spinsUntilMs)) return false
    if (channel.isTouched || !channel.arm()) return false
    counts[SLEEPS] = (counts[SLEEPS] as number) + 1
    return true
  }

  private endTurn(nowMs: number): void {
    const { hot } = this
    if (this.hasArrived) this.spin.noteArrival(nowMs)
    else if (this.maySpin && !this.hasMoved) {
      // The peer, or a helper of the collector, may wait for this core.
      if (hot.length === 0) this.spin.noteVain()
      else yieldCore()
    }
    this.budget.end()
    if (this.unserved === undefined) return
    const at = hot.indexOf(this.unserved)
    if (at > 0) hot.push(...hot.splice(0, at))
  }

  /**
   * True if the next turn has work, now or after a short wait. This finds a message some microseconds sooner than an
   * iteration of the event loop, which asks the kernel twice. Each wait in vain halves the frequency of further waits: the
   * peer may need this core, or longer than a wait pays for. `mayGoOn` costs more than a look at memory: it is asked last.
   */
  awaitFrame(mayGoOn: () => boolean, channels: readonly Channel[] = this.hot): boolean {
    const count = channels.length
    if (count === 0 || count > WAITED_CHANNELS_MAX || SPIN_MS === 0) return false
    let hasWork = false
    for (let i = 0; i < count; i++) {
      const { end, maySpin, isTouched, state } = channels[i] as Channel
      const word = end.frameWord
      if (!maySpin || state !== 'open' || word === undefined || word < 0) return false
      const words = end.receiveWords
      this.waitedWords[i] = words
      this.waitedAt[i] = word
      if (isTouched || atomics.load(words, word) !== 0) hasWork = true
    }
    if (hasWork) return mayGoOn()
    if (this.skips > 0) {
      this.skips--
      return false
    }
    if (!mayGoOn()) return false
    const begunMs = this.clock.now()
    let hasYielded = false
    for (let look = 1; ; look++) {
      for (let i = 0; i < count; i++) {
        if (atomics.load(this.waitedWords[i] as Int32Array, this.waitedAt[i] as number) === 0) continue
        this.skipsNext = 0
        return true
      }
      if (look % LOOKS !== 0) continue
      const waitedMs = this.clock.now() - begunMs
      if (waitedMs >= WAIT_MS) break
      if (waitedMs < YIELD_MS || hasYielded) continue
      hasYielded = true
      yieldCore()
    }
    this.skipsNext = Math.min(SKIPS_MAX, 2 * this.skipsNext + 1)
    this.skips = this.skipsNext
    return false
  }

  add(channel: Channel): void {
    channel.setWake(this.heat)
    channel.end.setDoorbell(isIo => this.answerDoorbell(channel, isIo === true))
    this.heat(channel)
  }

  remove(channel: Channel): void {
    channel.isHot = false
    if (this.thrown.size > 0) this.thrown.delete(channel)
    const at = this.hot.indexOf(channel)
    if (at >= 0) this.hot.splice(at, 1)
    // Views of memory that the channel's owner may unmap.
    this.waitedWords.length = 0
  }

  /** The host runs the turns from now on. */
  scheduleBy(scheduleTurn: ScheduleTurn, mayTurnNow: MayTurnNow): void {
    this.scheduleTurn = scheduleTurn
    this.mayTurnNow = mayTurnNow
  }

  /** Keeps the counts in `memory` from now on, which readers outside the thread may share. */
  moveCounts(memory: Float64Array): void {
    memory.set(this.counts)
    this.counts = memory
  }

  get stats(): PollerStats {
    const [turns = 0, messages = 0, emptyTurns = 0, sleeps = 0, doorbells = 0] = this.counts
    return { turns, messages, emptyTurns, sleeps, doorbells }
  }

  private readonly runTurn = (): void => this.turn()

  private readonly heat = (channel: Channel): void => {
    if (channel.isHot) return
    this.push(channel)
    this.schedule()
  }

  private push(channel: Channel): void {
    channel.isHot = true
    channel.isTouched = true
    channel.end.disarm()
    this.hot.push(channel)
  }

  private answerDoorbell(channel: Channel, isIo: boolean): void {
    if (channel.isOver) return
    this.counts[DOORBELLS] = (this.counts[DOORBELLS] as number) + 1
    if (channel.isHot) return
    this.push(channel)
    // As libuv reports a socket, if nothing else is due before.
    if (isIo && !this.isDue && this.mayTurnNow()) this.turn()
    else this.schedule()
  }

  private schedule(): void {
    if (this.isDue) return
    this.isDue = true
    this.scheduleTurn()
  }
}

/** The thread's own: all its channels that are not polled by hand. */
export const eventLoop = new EventLoop()

/** Counts of this thread's event loop. */
export function pollerStats(): Readonly<PollerStats> {
  return eventLoop.stats
}
