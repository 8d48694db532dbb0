/**
 * A listener of a TLS server throws. Its connection goes over a stream of the program's own over a socket: native code
 * is below it and above it. The error has no handler: the program ends.
 */
import { readFileSync } from 'node:fs'
import net, { type AddressInfo } from 'node:net'
import { Duplex } from 'node:stream'
import tls from 'node:tls'

const fixture = (name: string): string =>
  readFileSync(new URL(`../../../../tests/fixtures/${name}.pem`, import.meta.url), 'utf8')
const credentials = { key: fixture('key'), cert: fixture('cert') }

const server = net.createServer(socket => {
  const between = new Duplex({
    read: () => {},
    write: (chunk, _encoding, done) => {
      socket.write(chunk)
      done()
    },
  })
  socket.on('data', bytes => between.push(bytes))
  tls
    .createServer(credentials, () => {
      throw new Error('nobody handles this')
    })
    .emit('connection', between)
})
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
})
