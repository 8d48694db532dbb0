/**
 * A server that knows nothing of Fast Sockets but for what it reports. The first byte that a client sends says what is to
 * happen: `e` everything comes back; `h` the hash of everything comes back once the client has ended; `r` the connection
 * is reset; `s` so many MiB as the next two bytes say are sent, `b` the same in one write, then the end. Commands come by
 * standard input.
 */
import net, { type AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { transportOf } from '../../../fastsockets/index.ts'
import { describeDevice, verbsCounters } from '../../../nic/index.ts'
import { newSum, patternedMiB } from '../patterned.ts'

const server = net.createServer({ allowHalfOpen: true }, socket => {
  socket.on('error', error => say({ error: (error as NodeJS.ErrnoException).code }))
  socket.once('data', first => {
    const mode = String.fromCharCode(first[0] as number)
    const rest = first.subarray(1)
    if (mode === 'e') echo(socket, rest)
    else if (mode === 'h') hash(socket, rest)
    else if (mode === 's') void send(socket, rest.readUInt16BE(0))
    else if (mode === 'b')
      socket.end(Buffer.concat(Array.from({ length: rest.readUInt16BE(0) }, (_, i) => patternedMiB(i))))
    else socket.resetAndDestroy()
  })
})

function echo(socket: net.Socket, rest: Buffer): void {
  if (rest.length > 0) socket.write(rest)
  socket.pipe(socket)
}

function hash(socket: net.Socket, rest: Buffer): void {
  const sum = newSum().update(rest)
  socket.on('data', bytes => sum.update(bytes))
  socket.on('end', () => {
    const { transport } = transportOf(socket)
    socket.end(JSON.stringify({ sum: sum.digest('hex'), transport, from: socket.remoteAddress }))
  })
}

async function send(socket: net.Socket, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    if (!socket.write(patternedMiB(i))) await new Promise(resolve => socket.once('drain', resolve))
  }
  socket.end()
}

function say(message: object): void {
  console.log(JSON.stringify(message))
}

createInterface({ input: process.stdin }).on('line', line => {
  if (line === 'counters') say({ counters: verbsCounters() })
  if (line === 'exit') process.exit()
})
const [port = '0', host = '0.0.0.0'] = process.argv.slice(2)
server.listen(Number(port), host, () => {
  say({ port: (server.address() as AddressInfo).port, device: describeDevice() })
})
