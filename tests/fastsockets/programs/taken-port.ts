/**
 * A port that another user's process listens on, once its first server has closed. argv: the role, and the port.
 *
 * - `first`: prints its port; echoes on connections that stay after a message has closed the server.
 * - `second`: listens on the port and greets for it; says how many connections it was asked to take over.
 * - `client`: connects at once; for each message makes round trips until the wire of its connection is known, and says both.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { REFUSAL } from '../../../fastsockets/bootstrap/bootstrap-layout.ts'
import { BootstrapServer } from '../../../fastsockets/bootstrap/bootstrap-server.ts'
import { Peers } from '../../../fastsockets/connect/peers.ts'
import { transportOf } from '../../../fastsockets/handle/transport.ts'
import { PROMOTION } from '../../../fastsockets/host/unix-paths.ts'

const HOST = '127.0.0.1'
const ROUND_TRIPS_MAX = 20_000
const [role, portText] = process.argv.slice(2)
const port = Number(portText)
process.on('disconnect', () => process.exit())

if (role === 'first') {
  const server = net.createServer({ noDelay: true }, socket => socket.pipe(socket)).listen(0, HOST)
  await once(server, 'listening')
  process.send?.({ port: (server.address() as AddressInfo).port })
  process.on('message', () => {
    server.close()
    process.send?.({})
  })
} else if (role === 'second') {
  await once(net.createServer().listen(port, HOST), 'listening')
  let asked = 0
  const peers = new Peers((_stream, _port, _text, family) => {
    if (family === PROMOTION) asked++
    return REFUSAL.NOT_LISTENING
  }, net.Socket.prototype.connect)
  const place = { id: randomBytes(16), port, address: HOST, family: 4, ipv6Only: false } as const
  const isGreeting = BootstrapServer.open(
    { ...place, isPortShared: false, isRequired: false },
    peers,
    new Set(),
  )
  process.send?.({ isGreeting: isGreeting !== undefined })
  process.on('message', () => process.send?.({ asked }))
} else {
  const socket = net.connect({ port, host: HOST, noDelay: true })
  await once(socket, 'connect')
  process.send?.({})
  process.on('message', async () => {
    let count = 0
    for (; count < ROUND_TRIPS_MAX && transportOf(socket).reason?.code !== 'OTHER_USER'; count++) {
      socket.write('x')
      await once(socket, 'data')
    }
    process.send?.({ transport: transportOf(socket).transport, reason: transportOf(socket).reason?.code })
  })
}
