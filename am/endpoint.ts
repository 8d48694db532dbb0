import type { VirtualInterface } from '../nic/index.ts'
import { Channel, type ChannelOptions } from './channel.ts'
import { AmError } from './errors.ts'
import { type Handler, HandlerTable } from './handler-table.ts'
import { Poller } from './poller.ts'

export interface EndpointOptions {
  /** `event-loop`: handlers run by themselves. `manual`: only within `poll()`, and the event loop is not touched. */
  readonly progress?: 'event-loop' | 'manual'
}

/** One poller per thread, shared by all its endpoints. */
const threadPoller = new Poller()

/**
 * This side of active-message conversations: a handler table and the channels to its peers. Connecting the virtual
 * interfaces is up to whoever opens the endpoint.
 */
export class Endpoint {
  readonly #handlers = new HandlerTable()
  readonly #channels = new Set<Channel>()
  readonly #poller: Poller | undefined
  #isClosed = false

  constructor(options: EndpointOptions = {}) {
    this.#poller = options.progress === 'manual' ? undefined : threadPoller
  }

  /** Handlers may be set and replaced at any time, also from within a handler. */
  setHandler(index: number, handler: Handler | undefined): void {
    this.#handlers.set(index, handler)
  }

  /** Begins a conversation over a connected interface, which belongs to the channel from now on. */
  attach(end: VirtualInterface, options: ChannelOptions = {}): Channel {
    if (this.#isClosed) throw new AmError('ERR_AM_CLOSED', 'the endpoint is closed')
    const channel = new Channel(end, this.#handlers, options)
    this.#channels.add(channel)
    this.#poller?.add(channel)
    return channel
  }

  detach(channel: Channel): void {
    this.#channels.delete(channel)
    this.#poller?.remove(channel)
    channel.close()
  }

  /** Handles what has arrived on every channel, up to `limit` messages each; returns how many. Never waits. */
  poll(limit = 64): number {
    let count = 0
    for (const channel of this.#channels) count += Math.max(0, channel.progress(limit))
    return count
  }

  close(): void {
    this.#isClosed = true
    for (const channel of this.#channels) this.detach(channel)
  }
}

/** What this thread's poller has done so far. */
export function pollerStats(): Readonly<Poller['stats']> {
  return threadPoller.stats
}
