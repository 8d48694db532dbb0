/**
 * A process of an allowed user that holds the first hashed port of another user's listener, and greets for it. argv:
 * the listener's port. On request it prints how many connections it was offered.
 */
import { randomBytes } from 'node:crypto'
import net from 'node:net'
import { REFUSAL } from '../../../fastsockets/bootstrap/bootstrap-layout.ts'
import { BootstrapServer } from '../../../fastsockets/bootstrap/bootstrap-server.ts'
import { Peers } from '../../../fastsockets/connect/peers.ts'

const port = Number(process.argv[2])
let offered = 0
const accept = (): number => {
  offered++
  return REFUSAL.NOT_LISTENING
}
const peers = new Peers(accept, net.Socket.prototype.connect)
const place = { id: randomBytes(16), port, address: '127.0.0.1', family: 4, ipv6Only: false } as const
const bootstrap = BootstrapServer.open({ ...place, isPortShared: false, isRequired: false }, peers, new Set())
process.on('message', () => process.send?.({ offered }))
process.on('disconnect', () => process.exit())
process.send?.({ isGreeting: bootstrap?.isHashed === true })
