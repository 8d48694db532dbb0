import type { VirtualInterface } from '../nic/index.ts'
import { Channel, type ChannelOptions } from './channel.ts'
import { closedError } from './errors.ts'
import { type Handler, HandlerTable } from './handler-table.ts'
import { type MayTurnNow, Poller, type ScheduleTurn } from './poller.ts'
import type { PollerStats } from './poller-counts.ts'

/** `event-loop`: the poller runs handlers. `manual`: only `poll()` runs them; the event loop is not touched. */
export type Progress = 'event-loop' | 'manual'

/** One poller per thread, shared by all its channels. */
const threadPoller = new Poller()

/** Channels that share a handler table and are polled together. The caller connects their interfaces. */
export class ChannelGroup {
  readonly handlers = new HandlerTable()
  readonly #channels: Channel[] = []
  readonly #poller: Poller | undefined
  readonly #onWake: () => void
  /** Index at which the next poll begins: behind a channel whose handler threw. */
  #next = 0
  #isClosed = false

  /** `onWake`, with manual progress: an armed doorbell rang, or there may be work without one. */
  constructor(options: { readonly progress?: Progress; readonly onWake?: () => void } = {}) {
    this.#poller = options.progress === 'manual' ? undefined : threadPoller
    this.#onWake = options.onWake ?? (() => {})
  }

  /** Handlers may be set and replaced at any time, also from within a handler. */
  setHandler(index: number, handler: Handler | undefined): void {
    this.handlers.set(index, handler)
  }

  /** Begins a conversation over a connected interface. The channel owns the interface from then on. */
  attach(end: VirtualInterface, options: ChannelOptions): Channel {
    return this.add(new Channel(end, this.handlers, options))
  }

  add<C extends Channel>(channel: C): C {
    if (this.#isClosed) throw closedError()
    this.#channels.push(channel)
    if (this.#poller === undefined) this.#watch(channel)
    else this.#poller.add(channel)
    return channel
  }

  detach(channel: Channel): void {
    const at = this.#channels.indexOf(channel)
    if (at >= 0) this.#channels.splice(at, 1)
    if (at >= 0 && at < this.#next) this.#next--
    this.#poller?.remove(channel)
    channel.close()
  }

  /** Handles messages that have arrived, on every channel up to `limit`; returns how many. Never waits. */
  poll(limit = 64): number {
    let count = 0
    // Handlers may add and close channels during this loop.
    for (let left = this.#channels.length; left > 0 && this.#channels.length > 0; left--) {
      if (this.#next >= this.#channels.length) this.#next = 0
      const channel = this.#channels[this.#next++] as Channel
      const handled = channel.progress(limit)
      if (handled > 0) count += handled
    }
    return count
  }

  /** Arms every doorbell. False if there is work to do instead of sleeping. */
  arm(): boolean {
    if (this.#channels.every(channel => channel.arm())) return true
    this.disarm()
    return false
  }

  disarm(): void {
    for (const channel of this.#channels) channel.end.disarm()
  }

  close(): void {
    this.#isClosed = true
    for (const channel of [...this.#channels]) this.detach(channel)
  }

  #watch(channel: Channel): void {
    channel.setWake(this.#onWake)
    channel.end.setDoorbell(this.#onWake)
    // The others may be armed, but this channel is not: wake the owner, so that it polls and arms again.
    this.#onWake()
  }
}

/** Counts of this thread's poller. */
export function pollerStats(): Readonly<PollerStats> {
  return threadPoller.counts.snapshot()
}

/**
 * Keeps the counts of this thread's poller in `memory`, in the order of `POLLER_COUNTS`, for readers outside the
 * thread.
 */
export function movePollerStats(memory: Float64Array): void {
  threadPoller.counts.moveTo(memory)
}

/**
 * For the scheduler of turns: true if the poller has work, at once or after a short wait in place, if `mayWait`
 * permits it.
 */
export function awaitWork(mayWait: () => boolean): boolean {
  return threadPoller.awaitWork(mayWait)
}

/** Schedules this thread's turns of the poller by `schedule` from now on. */
export function scheduleTurnsBy(schedule: ScheduleTurn, mayTurnNow: MayTurnNow): void {
  threadPoller.scheduleBy(schedule, mayTurnNow)
}
