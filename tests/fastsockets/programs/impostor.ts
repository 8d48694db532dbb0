/**
 * argv: victim's port, port of the server to impersonate. Sends HELLO to the victim with that server's endpoint id,
 * takes up the offer, and stays silent. Then it listens, prints its port, and greets every caller with that id, too.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { callDoor, Race, shakeHands } from '../../../fastsockets/bootstrap/bootstrap-client.ts'
import { REFUSAL } from '../../../fastsockets/bootstrap/bootstrap-layout.ts'
import { BootstrapServer } from '../../../fastsockets/bootstrap/bootstrap-server.ts'
import { Peers } from '../../../fastsockets/connect/peers.ts'
import { type Driver, drivers } from '../../../nic/index.ts'
import { greetingOf } from '../../support/greeting.ts'

const HOST = '127.0.0.1'
const WAIT_MS = 10_000
const [victim, other] = process.argv.slice(2).map(Number) as [number, number]
const { connect } = net.Socket.prototype

async function call(port: number) {
  const found = await greetingOf(HOST, port, 4, WAIT_MS)
  if ('code' in found) throw new Error(found.code)
  return found
}

const { connection, greeting } = await call(other)
connection.destroy()
const { endpointId } = greeting
const peers = new Peers(() => REFUSAL.NOT_LISTENING, connect)

const called = await call(victim)
const door = await callDoor(called.greeting.door, connect, new Race())
if ('code' in door) throw new Error(door.text)
const { listenerId } = called.greeting
const shaken = await shakeHands(door, { ...peers.introduce(victim), endpointId, listenerId }, WAIT_MS)
if (shaken?.answer.result !== 0) throw new Error(`refused: ${shaken?.answer.result}`)
const { answer } = shaken
const driver = drivers.get(answer.driver) as Driver
const end = await driver.connect(answer.blob, { allowUid: () => true })

const server = net.createServer(socket => socket.end('impostor')).listen(0, HOST)
await once(server, 'listening')
const { port } = server.address() as AddressInfo
const host = {
  introduce: (port: number) => ({ ...peers.introduce(port), endpointId }),
  answer: peers.answer.bind(peers),
  openDoor: peers.openDoor.bind(peers),
}
const id = randomBytes(16)
const place = {
  id,
  port,
  address: HOST,
  family: 4,
  ipv6Only: false,
  isPortShared: false,
  isRequired: false,
} as const
BootstrapServer.open(place, host, new Set())
process.on('disconnect', () => process.exit())
process.send?.({ state: end.state, port })
