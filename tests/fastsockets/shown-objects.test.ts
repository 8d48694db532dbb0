/**
 * What programs find in objects of this package that they print, walk and copy: little, and nothing of the runtime. What is
 * private stays out of it, also in the file that ships.
 */
import dgram from 'node:dgram'
import { once } from 'node:events'
import { inspect } from 'node:util'
import { firstValueFrom } from 'rxjs'
import t, { type Test } from 'tap'
import { openEndpoint } from '../../am/index.ts'
import net, { type AddressInfo } from '../../fastsockets/index.ts'
import { CompletionQueue, connect, listen } from '../../fastsockets/raw/index.ts'
import { walk } from '../support/walk.ts'

/** Objects that may be reached: the addresses of a raw socket, the words and bytes of a message. */
const REACHED_MAX = 8
/** Characters of all that `inspect` finds. */
const TEXT_MAX = 4096
const PRIVATE = /[$#][a-z]/

function looksSmall(t: Test, name: string, object: object): void {
  const { count, thrown } = walk(object)
  t.ok(count <= REACHED_MAX, `${name}: ${count} objects`)
  t.strictSame(thrown, [], `no getter of ${name} throws`)
  t.ok(JSON.stringify(object).length < TEXT_MAX, `${name} in JSON`)
  t.ok(inspect(object, { depth: Infinity, showHidden: true, getters: true }).length < TEXT_MAX, name)
}

t.test('private names are not shown', async t => {
  const endpoint = await openEndpoint({ segment: 1 << 20 })
  const rawServer = await listen({ port: 0, host: '127.0.0.1' })
  const rawSocket = await connect({ port: rawServer.address.port, host: '127.0.0.1' })
  const messageServer = await listen({ type: 'datagram', host: '127.0.0.1' })
  const messageSocket = await connect({
    type: 'datagram',
    port: messageServer.address.port,
    host: '127.0.0.1',
  })
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = net.connect((server.address() as AddressInfo).port, '127.0.0.1')
  await once(socket, 'connect')
  const { _handle: handle } = socket as unknown as { _handle: object }
  const shown = { endpoint, rawServer, rawSocket, messageSocket, queue: new CompletionQueue(), handle }
  for (const [name, object] of Object.entries(shown)) t.notMatch(inspect(object, { depth: 0 }), PRIVATE, name)
  for (const [name, object] of Object.entries({ ...shown, handle: {} })) looksSmall(t, name, object)
  socket.destroy()
  server.close()
  for (const closing of [rawSocket, rawServer, messageSocket, messageServer]) closing.close()
  await endpoint.close()
})

t.test('a UDP socket leads to nothing of the runtime', async t => {
  const socket = dgram.createSocket('udp4').bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const text = inspect(socket, { depth: Infinity, showHidden: true })
  t.match(text, /\bUDP\b/, 'its handle is shown')
  t.notMatch(text, /fastsockets|UdpNotes|carrier/)
  socket.close()
})

t.test('messages lead to nothing of the runtime: one in its handler, a reply, one of a stream', async t => {
  const [client, server] = [await openEndpoint(), await openEndpoint()]
  await client.map(0, server.name)
  server.setHandler(1, message => {
    looksSmall(t, 'the message in its handler', message)
    looksSmall(t, 'a copy of it', Object.create(Object.getPrototypeOf(message)))
    message.reply(2, 3)
  })
  looksSmall(t, 'the reply', await client.call(0, 1, Buffer.from('payload'), [1, 2]))
  const messages = server.messages(4)
  looksSmall(t, 'the stream', messages)
  const received = firstValueFrom(messages)
  client.request(0, 4, 5)
  looksSmall(t, 'a message of the stream', await received)
  const unanswered = await client.call(0, 9).catch((error: object) => error)
  looksSmall(t, 'the error of a call that came back', unanswered)
  await client.close()
  await server.close()
})
