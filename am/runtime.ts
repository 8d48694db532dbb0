/**
 * What endpoints take from the process that they run in: time, turns, names, and how callers and peers are reached. A
 * thread has one. The simulator makes one for each simulated process.
 */
import { type Clock, realClock } from '../nic/clock.ts'
import { callTcpAddress } from '../nic/index.ts'
import { type EventLoop, eventLoop } from './progress/event-loop.ts'
import type { CallAddress } from './rendezvous/dialing.ts'
import { type EndpointName, newEndpointName } from './rendezvous/endpoint-name.ts'
import type { RendezvousHost } from './rendezvous/reception.ts'
import { rendezvous } from './rendezvous/rendezvous.ts'
import type { TcpAddress } from './rendezvous/tcp-address.ts'

/** Where callers ask for the endpoints of one process. */
export interface RendezvousDoor {
  /** Resolves when callers can reach the endpoint. */
  open(endpoint: string, host: RendezvousHost): Promise<void>
  close(endpoint: string): void
  /** Whether the endpoint keeps the event loop alive. */
  ref(endpoint: string): void
  unref(endpoint: string): void
}

export interface Runtime {
  readonly clock: Clock
  readonly eventLoop: EventLoop
  readonly rendezvous: RendezvousDoor
  /** Calls a process of another host where it listens. */
  readonly callAddress: CallAddress
  /** Bytes of unacknowledged frames that a channel over an unreliable driver keeps; by default 1 MiB. */
  readonly retentionBytes?: number
  /** A name that no other endpoint has. `address`: where the endpoint listens for callers of other hosts. */
  newName(address?: TcpAddress): EndpointName
}

export const threadRuntime: Runtime = {
  clock: realClock,
  eventLoop,
  rendezvous,
  callAddress: callTcpAddress,
  newName: newEndpointName,
}
