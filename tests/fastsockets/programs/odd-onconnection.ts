/** Puts in the place of a listening handle's callback what is no function: Node's own handle then calls nothing. */
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'

const VALUES = { null: null, number: 5, object: {}, string: 'x' }

for (const [value, onconnection] of Object.entries(VALUES)) {
  const server = net.createServer(socket => socket.end('x')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  Object.assign((server as unknown as { _handle: object })._handle, { onconnection })
  const socket = net.connect((server.address() as AddressInfo).port, '127.0.0.1')
  const heard = await Promise.race([
    once(socket, 'connect').then(() => 'connect'),
    once(socket, 'error').then(([error]) => String(error)),
  ])
  process.send?.({ value, heard })
}
process.exit()
