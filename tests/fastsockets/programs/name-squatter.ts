/**
 * Registers the name of another process's listener, and waits there for its clients. argv: the daemon's address, the listener's
 * port, and `greet` if it greets them, with a door behind which there is no server
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import {
  encodeIntroduction,
  GREETING_MAGIC,
  VERSION,
} from '../../../fastsockets/bootstrap/bootstrap-layout.ts'
import { NameClient } from '../../../nameservice/index.ts'
import { hostIdentity } from '../../../nic/index.ts'

const [address = '', target = '', what] = process.argv.slice(2)
let callers = 0
const server = net.createServer(caller => {
  callers++
  caller.on('error', () => {}).resume()
  if (what === 'greet') caller.write(falseGreeting())
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo
const names = new NameClient({ address })
const registration = names.register({
  name: `inet:tcp:127.0.0.1:${target}`,
  endpoint: '00'.repeat(16),
  host: hostIdentity().toString('hex'),
  version: VERSION,
  port,
  drivers: [{ name: 'shm', address: '' }],
})
await registration.registered
process.on('message', () => process.send?.({ callers }))
process.on('disconnect', () => process.exit())
process.send?.({ port })

function falseGreeting(): Buffer {
  const ids = { endpointId: randomBytes(16), door: randomBytes(16), listenerId: randomBytes(16) }
  const rest = {
    version: VERSION,
    port: Number(target),
    isShared: false,
    isRequired: false,
    pid: 1,
    hostIdentity: hostIdentity(),
  }
  return encodeIntroduction(GREETING_MAGIC, { ...ids, ...rest, uid: process.geteuid?.() ?? 0 })
}
