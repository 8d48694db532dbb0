/**
 * Calls methods of the handle of a connected socket that its state forbids, and writes and reads then. argv: the end whose handle is
 * called, `client` or `server`. Sends what each returned and whether the socket still works.
 */
import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'

interface Handle {
  hasRef(): boolean
  bind(address: string, port: number): number
  open(fd: number): number
  listen(backlog: number): number
  useUserBuffer(bytes: Uint8Array): number
}

const [, , end] = process.argv
const server = net.createServer().listen(0, '127.0.0.1')
await once(server, 'listening')
const client = net.connect((server.address() as AddressInfo).port, '127.0.0.1')
const [accepted] = (await Promise.all([once(server, 'connection'), once(client, 'connect')]))[0] as [Socket]
const socket = end === 'client' ? client : accepted
const other = end === 'client' ? accepted : client
const { _handle: handle } = socket as unknown as { _handle: Handle }
const returned = {
  bind: handle.bind('127.0.0.1', 0),
  open: handle.open(0),
  listen: handle.listen(5),
  hasRef: handle.hasRef(),
}
socket.write('hello')
const [received] = (await once(other, 'data')) as [Buffer]
socket.on('error', () => {}).destroy()
const closed = {
  bind: handle.bind('127.0.0.1', 0) < 0,
  listen: handle.listen(5) < 0,
}
process.send?.({ returned, received: String(received), closed }, () => process.exit())
