/** Shows streams: their rows on the status page, and the events of their begin and end. */
import { allowsPeerMemory } from '../policy/own-policy.ts'
import { EVENTS, publishEvent } from '../status/events.ts'
import { statusPage } from '../status/status-page.ts'
import type { Stream } from './stream.ts'
import { endsOf } from './stream-addresses.ts'

export interface ShowingChannel {
  readonly isRaw: boolean
  readonly mayOffer: boolean
  readonly transport: string
  readonly peerUid: number | undefined
  readonly way: { readonly isThroughFolder: boolean } | undefined
  /** What is shown where the channel cannot offer. Found once: reading the environment costs a tenth of a connection. */
  zcopyElse: 'refused' | 'off' | undefined
}

/**
 * Shows a stream whose peer grants `window`; or updates the row of one that is shown. A receiver of datagrams is shown once it has its
 * sender's address.
 */
export function showStream(stream: Stream, window: number, channel: ShowingChannel): void {
  const { counts, role, isOfDatagrams } = stream
  if (counts.isOpen) return counts.grant(window)
  if (isOfDatagrams && stream.addresses === undefined) return
  const { isRaw, mayOffer, transport, peerUid, way } = channel
  const { local, remote } = endsOf(stream)
  const kind = isRaw ? 'raw' : isOfDatagrams ? 'dgram' : 'net'
  channel.zcopyElse ??= allowsPeerMemory() ? 'refused' : 'off'
  const zcopy = mayOffer ? 'possible' : channel.zcopyElse
  const containerUid = way?.isThroughFolder ? peerUid : undefined
  // One that has moved was counted when it started on TCP.
  const isCounted = isOfDatagrams || stream.isPromotion
  const row = { kind, transport, role, zcopy, containerUid, local, remote } as const
  counts.open(statusPage().open(row, isCounted), window)
  counts.sent(stream.sendSequence)
  if (!isOfDatagrams && EVENTS.connection.hasSubscribers)
    publishEvent(EVENTS.connection, { transport, role, local, remote })
}

export function hideStream(stream: Stream, transport: string): void {
  const { counts, role } = stream
  if (!counts.close() || stream.isOfDatagrams || !EVENTS.close.hasSubscribers) return
  const { bytesIn, bytesOut } = counts
  publishEvent(EVENTS.close, { transport, role, ...endsOf(stream), bytesIn, bytesOut })
}
