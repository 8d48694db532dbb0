/**
 * argv: victim's port, port of who is to be passed for. Says hello to the victim by the other one's endpoint id, takes up its
 * offer, and keeps quiet.
 */
import net from 'node:net'
import { callHashedPort, shakeHands } from '../../../fastsockets/bootstrap/bootstrap-client.ts'
import { type Driver, drivers } from '../../../nic/index.ts'

const HOST = '127.0.0.1'
const WAIT_MS = 10_000
const [victim, other] = process.argv.slice(2).map(Number) as [number, number]

async function call(port: number) {
  const found = await callHashedPort(HOST, port, 4, net.Socket.prototype.connect, WAIT_MS)
  if ('code' in found) throw new Error(found.code)
  return found
}

const { connection, greeting } = await call(other)
connection.destroy()
const called = await call(victim)
const hello = { ...greeting, port: victim, uid: process.getuid?.() ?? 0, pid: process.pid }
const answer = await shakeHands(called.connection, hello, WAIT_MS)
if (answer?.result !== 0) throw new Error(`refused: ${answer?.result}`)
const driver = drivers.get(answer.driver) as Driver
const end = await driver.connect(answer.blob, { allowUid: () => true })
process.on('disconnect', () => process.exit())
process.send?.({ state: end.state })
