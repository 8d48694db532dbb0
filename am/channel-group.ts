import type { VirtualInterface } from '../nic/index.ts'
import { Channel, type ChannelOptions } from './channel.ts'
import { closedError } from './errors.ts'
import { type Handler, HandlerTable } from './handler-table.ts'
import { type EventLoop, eventLoop as threadEventLoop } from './progress/event-loop.ts'

/** `event-loop`: the event loop runs handlers. `manual`: only `poll()` runs them; the event loop is not touched. */
export type Progress = 'event-loop' | 'manual'

/** Channels that share a handler table and are polled together. The caller connects their interfaces. */
export class ChannelGroup {
  readonly handlers = new HandlerTable()
  readonly #channels: Channel[] = []
  readonly #eventLoop: EventLoop | undefined
  readonly #onWake: () => void
  /** Index at which the next poll begins: behind a channel whose handler threw. */
  #next = 0
  #isClosed = false

  /** `onWake`, with manual progress: an armed doorbell rang, or there may be work without one. */
  constructor(
    options: {
      readonly progress?: Progress
      readonly onWake?: () => void
      /** By default the thread's own. */
      readonly eventLoop?: EventLoop
    } = {},
  ) {
    const { eventLoop = threadEventLoop } = options
    this.#eventLoop = options.progress === 'manual' ? undefined : eventLoop
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
    if (this.#eventLoop === undefined) this.#watch(channel)
    else this.#eventLoop.add(channel)
    return channel
  }

  detach(channel: Channel): void {
    const at = this.#channels.indexOf(channel)
    if (at >= 0) this.#channels.splice(at, 1)
    if (at >= 0 && at < this.#next) this.#next--
    this.#eventLoop?.remove(channel)
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
