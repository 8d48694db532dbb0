/** A host that greets its callers as a relinked server does, and then says nothing more. Its port takes TCP as well. */
import { randomBytes } from 'node:crypto'
import net from 'node:net'
import {
  encodeIntroduction,
  GREETING_MAGIC,
  NO_ID,
  VERSION,
} from '../../../fastsockets/bootstrap/bootstrap-layout.ts'
import { hashedPort } from '../../../fastsockets/bootstrap/hashed-port.ts'

const [host = '', port = ''] = process.argv.slice(2)
const greeting = encodeIntroduction(GREETING_MAGIC, {
  version: VERSION,
  port: Number(port),
  isShared: false,
  isRequired: false,
  endpointId: randomBytes(16),
  hostIdentity: randomBytes(16),
  uid: process.getuid?.() ?? 0,
  pid: process.pid,
  door: NO_ID,
  listenerId: randomBytes(16),
})
let callerCount = 0
const bootstrap = net.createServer(caller => {
  callerCount++
  caller.on('error', () => {})
  caller.resume()
  caller.write(greeting)
})
const server = net.createServer(socket => socket.end(`${callerCount}`))
bootstrap.listen(hashedPort(Number(port), 0), host, () => {
  server.listen(Number(port), host, () => console.log('ready'))
})
