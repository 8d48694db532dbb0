/**
 * What `fastsockets` exports beside `node:net`. A part of its own (docs/decisions/0087), so that `import` and `require` get the same
 * objects. If another copy of this package has relinked the thread before, these are the objects of that copy: it knows the wires.
 */
import type * as dgram from 'node:dgram'
import type * as NodeNet from 'node:net'
import net, { type Socket } from 'node:net'
import { type DatagramTransport, datagramTransportOf } from './datagram/datagram-transport.ts'
import { transportOf as ofStream, type Transport } from './handle/transport.ts'
import { RequiredError as OwnRequiredError } from './policy/required-error.ts'
import { FALLBACK_REASONS as OWN_REASONS } from './reasons.ts'
import { firstCopy, load, relink } from './relink/preload.ts'

relink()
load()

const own = {
  transportOf: ofStream,
  RequiredError: OwnRequiredError,
  FALLBACK_REASONS: OWN_REASONS,
}
const { transportOf: transportOfStream, RequiredError, FALLBACK_REASONS }: typeof own = firstCopy() ?? own

/** What carries the bytes of a socket of `node:net`, `node:tls` or `node:dgram`, and why. */
export function transportOf(socket: dgram.Socket): DatagramTransport
export function transportOf(socket: Socket): Transport
export function transportOf(socket: Socket | dgram.Socket): Transport | DatagramTransport {
  return 'type' in socket && 'addMembership' in socket
    ? datagramTransportOf(socket)
    : transportOfStream(socket as Socket)
}

const ours = { transportOf, RequiredError, FALLBACK_REASONS }

type RequiredError = OwnRequiredError

export { FALLBACK_REASONS, RequiredError }

/** `node:net` itself, with our own exports added. */
export const fastsockets: typeof NodeNet & typeof ours = Object.assign(
  Object.create(Object.getPrototypeOf(net), Object.getOwnPropertyDescriptors(net)) as typeof net,
  ours,
)
