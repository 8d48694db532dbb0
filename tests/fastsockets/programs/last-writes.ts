/** argv: port. Fills the ring by the small writes of many sockets in one turn, and ends when all callbacks have come. */
import { once } from 'node:events'
import net from 'node:net'

const SOCKETS = 100
const WRITES = 8
const chunk = Buffer.alloc(4096)

const sockets: net.Socket[] = []
for (let i = 0; i < SOCKETS; i++) {
  const socket = net.connect(Number(process.argv[2]), '127.0.0.1')
  await once(socket, 'connect')
  sockets.push(socket)
}
let called = 0
const handleWritten = (): void => {
  if (++called === SOCKETS * WRITES) process.exit()
}
for (let i = 0; i < WRITES; i++) for (const socket of sockets) socket.write(chunk, handleWritten)
