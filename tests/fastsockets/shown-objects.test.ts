/** What `console.log` shows of objects that programs hold: what is private stays out of it, also in the file that ships. */
import { once } from 'node:events'
import { inspect } from 'node:util'
import t from 'tap'
import { openEndpoint } from '../../am/index.ts'
import net, { type AddressInfo } from '../../fastsockets/index.ts'
import { CompletionQueue, connect, listen } from '../../fastsockets/raw/index.ts'

const PRIVATE = /[$#][a-z]/

t.test('private names are not shown', async t => {
  const endpoint = await openEndpoint()
  const rawServer = await listen({ port: 0, host: '127.0.0.1' })
  const rawSocket = await connect({ port: rawServer.address.port, host: '127.0.0.1' })
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = net.connect((server.address() as AddressInfo).port, '127.0.0.1')
  await once(socket, 'connect')
  const { _handle: handle } = socket as unknown as { _handle: object }
  const shown = { endpoint, rawServer, rawSocket, queue: new CompletionQueue(), handle }
  for (const [name, object] of Object.entries(shown)) t.notMatch(inspect(object, { depth: 0 }), PRIVATE, name)
  socket.destroy()
  server.close()
  rawSocket.close()
  rawServer.close()
  await endpoint.close()
})
