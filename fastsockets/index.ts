/**
 * `import net from 'fastsockets'`: all exports of `node:net`, relinked, and `transportOf`.
 */
import type dgram from 'node:dgram'
import net from 'node:net'
import { type DatagramTransport, datagramTransportOf } from './datagram/datagram-transport.ts'
import { type Transport, transportOf as transportOfStream } from './handle/transport.ts'
import { RequiredError } from './policy/required-error.ts'
import { FALLBACK_REASONS } from './reasons.ts'
import { load, relink } from './relink/preload.ts'

relink()
load()

export * from 'node:net'
export type { DatagramTransport } from './datagram/datagram-transport.ts'
export type { DatagramPair } from './datagram/udp-handles.ts'
export type { Transport } from './handle/transport.ts'
export type { PolicyEvent } from './policy/policy-watch.ts'
export { RequiredError } from './policy/required-error.ts'
export { FALLBACK_REASONS, type FallbackCode, type FallbackReason } from './reasons.ts'
export type {
  CloseEvent,
  ConnectionEvent,
  FallbackEvent,
  ListeningEvent,
  PromotedEvent,
  RefusedEvent,
} from './status/events.ts'

/** What carries the bytes of a socket of `node:net`, `node:tls` or `node:dgram`, and why. */
export function transportOf(socket: dgram.Socket): DatagramTransport
export function transportOf(socket: net.Socket): Transport
export function transportOf(socket: net.Socket | dgram.Socket): Transport | DatagramTransport {
  return 'type' in socket && 'addMembership' in socket
    ? datagramTransportOf(socket)
    : transportOfStream(socket as net.Socket)
}

const ours = { transportOf, RequiredError, FALLBACK_REASONS }

/** `node:net` itself, with our own exports added. */
const fastsockets: typeof net & typeof ours = Object.assign(
  Object.create(Object.getPrototypeOf(net), Object.getOwnPropertyDescriptors(net)) as typeof net,
  ours,
)

export default fastsockets
