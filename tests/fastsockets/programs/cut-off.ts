/**
 * A client that is killed while libuv has bytes of its that the kernel had no room for. argv: 'server' or 'client', and the
 * server's port. The server says { port }, reads nothing until it is sent anything, and says then how the connection ended. The
 * client says 'written'; if it is relinked, once its connection has moved.
 */
import net, { type AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

/** More than the kernel takes from one side and for the other. */
const LENGTH = 32 << 20
const [role, port = ''] = process.argv.slice(2)
const isRelinked = process.execArgv.includes('--import')

if (role === 'server') {
  const server = net.createServer({ pauseOnConnect: true }, socket => {
    let [received, end] = [0, '']
    socket.on('data', bytes => {
      received += bytes.length
    })
    for (const name of ['end', 'error'])
      socket.on(name, (error?: NodeJS.ErrnoException) => {
        end += error?.code ?? name
      })
    socket.on('close', () => process.send?.({ end, isShort: received > 0 && received < LENGTH }))
    process.on('message', () => socket.resume())
  })
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
} else {
  const socket = net.connect(Number(port), '127.0.0.1')
  const until = async (is: () => boolean): Promise<void> => {
    while (isRelinked && !is()) await sleep(5)
  }
  socket.on('connect', async () => {
    socket.write('x')
    // The channel to the server is found: the next write makes the connection move.
    await until(() => transportOf(socket).promotion === 'possible')
    socket.write(Buffer.alloc(LENGTH))
    await until(() => transportOf(socket).transport === 'shm')
    process.send?.('written')
  })
}
