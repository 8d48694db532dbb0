/**
 * What a channel of sockets takes from the process that it runs in: time, turns, and where its streams are shown. A thread
 * has one for each kind of socket; the simulator makes one for each simulated process.
 */
import { type EventLoop, eventLoop } from '../../am/channels.ts'
import { type Clock, realClock } from '../../nic/clock.ts'
import type { VirtualInterface } from '../../nic/index.ts'
import { allocateFresh } from '../host/fresh-memory.ts'
import { lookCount } from '../host/io-turns.ts'
import { drainTicks } from '../host/node-internals.ts'
import { REPORTS_LATE_RESETS } from '../host/node-versions.ts'
import { hideClosedListeners, showClosedListeners } from './closed-listeners.ts'
import { Departures } from './departures.ts'
import type { Stream } from './stream.ts'
import type { StreamHost } from './stream-host.ts'
import { hideStream, type ShowingChannel, showStream } from './stream-rows.ts'
import { thresholdOf } from './zcopy/threshold.ts'

export interface ChannelHost extends StreamHost {
  readonly clock: Clock
  readonly eventLoop: EventLoop
  readonly departures: Departures
  /** Chunks of at least so many bytes are offered over this transport, where that is possible. */
  offerMinOf(transport: string): number
  /** Shows an open stream with the peer's `window`. */
  show(stream: Stream, window: number, channel: ShowingChannel): void
  hide(stream: Stream, transport: string): void
  /** Shows the peer of a channel how many listeners this process has closed; from the channel's begin to its end. */
  showClosedListeners(end: VirtualInterface): void
  hideClosedListeners(end: VirtualInterface): void
}

export const processHost: ChannelHost = {
  clock: realClock,
  eventLoop,
  departures: new Departures(realClock),
  allocate: allocateFresh,
  lookCount,
  drainTicks,
  reportsLateResets: REPORTS_LATE_RESETS,
  offerMinOf: transport => thresholdOf(transport).bytes,
  show: showStream,
  hide: hideStream,
  showClosedListeners,
  hideClosedListeners,
}

/** Raw sockets run no callbacks, and may be polled inside the program's code: promises run after that. */
export const rawHost: ChannelHost = { ...processHost, drainTicks: () => {} }
