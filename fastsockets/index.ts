/**
 * `import net from 'fastsockets'`: all exports of `node:net`, relinked, and `transportOf`.
 */
export * from 'node:net'
export type { DatagramTransport } from './datagram/datagram-transport.ts'
export type { DatagramPair } from './datagram/udp-notes.ts'
export { FALLBACK_REASONS, fastsockets as default, RequiredError, transportOf } from './entry.ts'
export type { FastTransport, PlainTransport, Transport } from './handle/transport.ts'
export type { PolicyEvent } from './policy/policy-watch.ts'
export type { FallbackCode, FallbackReason } from './reasons.ts'
export type {
  CloseEvent,
  ConnectionEvent,
  FallbackEvent,
  ListeningEvent,
  PromotedEvent,
  RefusedEvent,
} from './status/events.ts'
