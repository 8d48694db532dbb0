/**
 * The server of every measurement: an ordinary `node:net` program. Prints its port, ends with its standard input.
 *
 *   argv: echo | sink
 */
import net from 'node:net'

const [behaviour] = process.argv.slice(2)

const server = net.createServer(socket => {
  socket.on('error', () => {})
  if (behaviour === 'echo') socket.on('data', data => socket.write(data))
  else sink(socket)
})
server.listen(0, '127.0.0.1', () => print({ port: (server.address() as net.AddressInfo).port }))
process.stdin.on('end', () => process.exit()).resume()

/** Receives by 'data', and says at the end how long it took from the first byte on. */
function sink(socket: net.Socket): void {
  let bytes = 0
  let startMs = 0
  socket.on('data', data => {
    if (bytes === 0) startMs = performance.now()
    bytes += data.length
  })
  socket.on('end', () => {
    socket.end()
    print({ bytes, ms: performance.now() - startMs })
  })
}

function print(value: object): void {
  process.stdout.write(`${JSON.stringify(value)}\n`)
}
