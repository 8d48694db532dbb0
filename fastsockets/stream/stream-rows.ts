/** Shows streams: their rows on the status page, and the events of their begin and end. */
import { allowsPeerMemory } from '../policy/own-policy.ts'
import { type ConnectionEvent, EVENTS, publishEvent } from '../status/events.ts'
import { statusPage } from '../status/status-page.ts'
import type { Stream } from './stream.ts'
import { endsOf } from './stream-addresses.ts'

export interface ShowingChannel {
  readonly isRaw: boolean
  readonly mayOffer: boolean
  readonly transport: string
  readonly peerUid: number | undefined
  readonly way: { readonly isThroughFolder: boolean } | undefined
}

/**
 * Shows a stream whose peer grants `window`; or updates the row of one that is shown. A receiver of datagrams is shown once it has its
 * sender's address.
 */
export function showStream(
  stream: Stream,
  window: number,
  { isRaw, mayOffer, transport, peerUid, way }: ShowingChannel,
): void {
  if (stream.counts.isOpen) return stream.counts.grant(window)
  if (stream.isOfDatagrams && stream.addresses === undefined) return
  const connection = describe(stream, transport)
  const kind = isRaw ? 'raw' : stream.isOfDatagrams ? 'dgram' : 'net'
  const zcopy = mayOffer ? 'possible' : allowsPeerMemory() ? 'refused' : 'off'
  const containerUid = way?.isThroughFolder ? peerUid : undefined
  // One that has moved was counted when it started on TCP.
  const isCounted = stream.isOfDatagrams || stream.isPromotion
  stream.counts.open(statusPage().open({ kind, zcopy, containerUid, ...connection }, isCounted), window)
  stream.counts.sent(stream.sendSequence)
  if (!stream.isOfDatagrams) publishEvent(EVENTS.connection, connection)
}

export function hideStream(stream: Stream, transport: string): void {
  const { bytesIn, bytesOut } = stream.counts
  if (!stream.counts.close() || stream.isOfDatagrams || !EVENTS.close.hasSubscribers) return
  publishEvent(EVENTS.close, { ...describe(stream, transport), bytesIn, bytesOut })
}

function describe(stream: Stream, transport: string): ConnectionEvent {
  return { transport, role: stream.role, ...endsOf(stream) }
}
