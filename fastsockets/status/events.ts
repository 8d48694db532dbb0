/**
 * Events of sockets for programs, by `node:diagnostics_channel`. Without a subscriber no event is made; subscribers run in
 * the next tick, outside our code.
 *
 *   fastsockets:connection   a fast connection is up            ConnectionEvent
 *   fastsockets:close        this side of it has closed         ConnectionEvent, bytesIn, bytesOut
 *   fastsockets:fallback     a connection is not fast           FallbackEvent
 *   fastsockets:promoted     a connection that started on TCP has moved to the fast way      PromotedEvent
 *   fastsockets:refused      a client over TCP was reset: the policy requires the fast way         RefusedEvent
 *   fastsockets:policy       a changed policy file is in force, or cannot be used                PolicyEvent
 *   fastsockets:listening    a listener can be reached by the fast way, or why it cannot     ListeningEvent
 */
import { type Channel, channel } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { nextTick } from '../../nic/real-time.ts'
import type { PolicyEvent } from '../policy/policy-watch.ts'
import type { FallbackReason } from '../reasons.ts'
import type { Place } from './status-page.ts'

export interface ConnectionEvent {
  readonly transport: string
  readonly role: 'client' | 'server'
  readonly local: Place | undefined
  readonly remote: Place | undefined
}

export interface CloseEvent extends ConnectionEvent {
  readonly bytesIn: number
  readonly bytesOut: number
}

export interface FallbackEvent {
  readonly socket: Socket
  readonly role: 'client' | 'server'
  readonly reason: FallbackReason
  readonly remote: Place | undefined
}

export interface PromotedEvent extends ConnectionEvent {
  readonly socket: Socket
  /** What TCP has carried: all that this side has written, and read, until it moved. */
  readonly bytesIn: number
  readonly bytesOut: number
}

export interface ListeningEvent {
  readonly local: Place
  /**
   * Undefined if all candidates are taken, if only TCP reaches the listener, and for a unix path, which needs no
   * port.
   */
  readonly hashedPort: number | undefined
  /** Why only TCP reaches the listener; undefined for a listener that fast connections reach. */
  readonly reason?: FallbackReason
}

export interface RefusedEvent {
  readonly local: Place
  readonly remote: Place
  /** The rule that requires the fast way, with its file and line. */
  readonly because: string
}

export const EVENTS = {
  connection: channel('fastsockets:connection'),
  close: channel('fastsockets:close'),
  fallback: channel('fastsockets:fallback'),
  promoted: channel('fastsockets:promoted'),
  refused: channel('fastsockets:refused'),
  policy: channel('fastsockets:policy'),
  listening: channel('fastsockets:listening'),
} as const

export function publishEvent(
  channel: Channel,
  event:
    | ConnectionEvent
    | PromotedEvent
    | CloseEvent
    | FallbackEvent
    | PolicyEvent
    | RefusedEvent
    | ListeningEvent,
): void {
  if (channel.hasSubscribers) nextTick(publish, channel, event)
}

function publish(channel: Channel, event: object): void {
  channel.publish(event)
}
