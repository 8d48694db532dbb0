/** A raw server for the bench. Serves connections one after the other. argv: echo | sink, polling | waiting */
import { listen, type RawSocket } from '../../fastsockets/raw/index.ts'

const [what = 'echo', how = 'polling'] = process.argv.slice(2)
const BUFFER_SIZE = 64 * 1024
const buffer = Buffer.alloc(BUFFER_SIZE)

const server = await listen({ host: '127.0.0.1' })
console.log(JSON.stringify({ port: server.address.port }))
process.stdin.resume().on('end', () => process.exit())
for await (const socket of server) {
  if (how === 'polling') pollAll(socket)
  else await waitForAll(socket)
  socket.close()
}

function pollAll(socket: RawSocket): void {
  for (;;) {
    const length = socket.tryRecv(buffer)
    if (length === undefined) continue
    if (length === 0) break
    if (what === 'echo') for (let at = 0; at < length; ) at += socket.trySend(part(at, length))
  }
  sendDone(socket)
}

async function waitForAll(socket: RawSocket): Promise<void> {
  for (let length = 1; length > 0; ) {
    length = await socket.recv(buffer)
    if (what === 'echo' && length > 0) await socket.send(part(0, length))
  }
  sendDone(socket)
}

/** Tells the sender that all of it was read. */
function sendDone(socket: RawSocket): void {
  if (what === 'sink') void socket.trySend(Buffer.of(1))
}

function part(from: number, to: number): Buffer {
  return from === 0 && to === buffer.length ? buffer : buffer.subarray(from, to)
}
