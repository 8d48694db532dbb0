import type { ChannelGroup } from './channel-group.ts'
import type { PeerTable } from './peer-table.ts'
import type { ReliabilityStats } from './reliability/reliability-stats.ts'
import { ReliableInterface } from './reliability/reliable-interface.ts'

export interface PeerStats {
  readonly name: string
  /** Driver that carries the messages. */
  readonly driver: string
  /** Each driver that the endpoint prefers to that one, with the reason why it does not; undefined if there is none. */
  readonly driverReason: string | undefined
  readonly state: string
  /** Destinations that map this peer. */
  readonly destinations: readonly number[]
  readonly creditsLeft: number
  /** Requests that have neither been answered nor acknowledged. */
  readonly outstanding: number
  /** Reason for which long messages and gets are copied through the queue; undefined if they are not. */
  readonly oneSidedReason: string | undefined
  /** Counts of the reliability layer; undefined if the driver needs none. */
  readonly reliability: Readonly<ReliabilityStats> | undefined
  readonly requests: number
  readonly payloadBytes: number
  readonly returned: number
  readonly refusedForCredit: number
  readonly refusedForRoom: number
}

/** Counts of an endpoint since its opening. */
export interface EndpointStats {
  /** Handlers run so far. */
  readonly handled: number
  readonly peers: readonly PeerStats[]
}

export function statsOf(peers: PeerTable, group: ChannelGroup): EndpointStats {
  return {
    handled: group.handlers.runs,
    peers: Array.from(peers.all, ({ peerName, driverReason, mappings, channel }) => ({
      name: peerName,
      driver: channel.end.driver,
      driverReason,
      state: channel.state,
      destinations: [...mappings],
      creditsLeft: channel.creditsLeft,
      outstanding: channel.outstanding,
      oneSidedReason: channel.end.capabilities.rdmaReason,
      reliability: channel.end instanceof ReliableInterface ? { ...channel.end.stats } : undefined,
      ...channel.counts,
    })),
  }
}
