/** Datagrams of `node:dgram` past the kernel: what install.ts uses. */
import type { Peers } from '../connect/peers.ts'
import type { Acceptor } from '../stream/socket-channel.ts'
import { SocketCarrier } from './carrier.ts'
import { acceptPair } from './pairs.ts'
import { boundHandles, type UdpHandle, type UdpNotes, watching } from './udp-notes.ts'
import { showSocket } from './udp-rows.ts'

/** Gives a carrier to each socket that is bound, or will be. */
export function carryDatagrams(peers: Peers): void {
  const carry = (handle: UdpHandle, notes: UdpNotes): void => {
    if (notes.carrier !== undefined) return
    if (notes.reason === undefined) notes.carrier = SocketCarrier.open(handle, notes, peers)
    showSocket(handle, notes)
  }
  watching.onBound = carry
  watching.onLocal = () => {}
  for (const [handle, notes] of boundHandles) carry(handle, notes)
}

/** A peer asks to send datagrams to the socket on `port`. */
export const acceptDatagrams: Acceptor = (stream, port, secret, _family, promisedPort) =>
  acceptPair(stream, secret, promisedPort, () => receiverOn(port)?.mayReceive() === true)

function receiverOn(port: number): SocketCarrier | undefined {
  for (const { carrier } of boundHandles.values())
    if (carrier instanceof SocketCarrier && carrier.port === port) return carrier
  return undefined
}
