/** Registers the name of somebody's listener, and waits there for its clients. argv: the daemon's address, the listener's port */
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { VERSION } from '../../../fastsockets/bootstrap/bootstrap-layout.ts'
import { NameClient } from '../../../nameservice/index.ts'
import { hostIdentity } from '../../../nic/index.ts'

const [address = '', target = ''] = process.argv.slice(2)
let callers = 0
const server = net.createServer(caller => {
  callers++
  caller.on('error', () => {}).resume()
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
