/**
 * An echo client or server that knows nothing of this package. argv: 'server' or 'client', and a port or path, which the server need not have. The server says { port }.
 * As 'printer' it has an idle connection to itself, and writes to standard output, a pipe. As 'source' it writes to each client without end; as 'reader' it only reads, of such a server.
 * As 'sink' it is a server that only reads, and says { bytes } of each client; as 'writer' it writes { size } bytes a write to such a one, and waits for 'drain' only, until it has moved or has written { count } times; with { connect } over a new connection to that port.
 * The client runs { count } messages, one after the other, and both say after that, or when asked, what of ours is loaded.
 */
import diagnostics from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import net, { type AddressInfo } from 'node:net'

const [role, place = ''] = process.argv.slice(2)
/** `@NAME` stands for an abstract path. */
const port = place.replace(/^@/, '\0')
const { cache } = createRequire(import.meta.url)

function tellLoaded(): void {
  const loaded = Object.keys(cache).filter(file => /\/(runtime-[^/]*\.cjs|koffi\/)/.test(file)).length
  process.send?.({ isLoaded: loaded > 0 })
}

if (role === 'server') {
  const server = net.createServer(socket => socket.pipe(socket))
  const number = Number(port)
  server.listen(Number.isNaN(number) ? { path: port } : { port: number, host: '127.0.0.1' }, () => {
    process.send?.({ port: (server.address() as AddressInfo).port })
  })
  process.on('message', tellLoaded)
} else if (role === 'source') {
  const chunk = Buffer.alloc(65_536)
  const server = net
    .createServer(socket => {
      const pump = (): void => {
        while (socket.writable && socket.write(chunk)) {}
      }
      socket.on('drain', pump).on('error', () => {})
      pump()
    })
    .listen(0, '127.0.0.1', () => {
      process.send?.({ port: (server.address() as AddressInfo).port })
    })
} else if (role === 'printer') {
  const server = net
    .createServer(socket => socket.end('x').resume())
    .listen(0, '127.0.0.1', () => {
      net.connect((server.address() as AddressInfo).port, '127.0.0.1').resume()
      for (let left = 10_000; left > 0; left--) process.stdout.write('a line\n')
      process.on('message', tellLoaded)
      setTimeout(() => process.send?.('printed'), 500)
    })
} else if (role === 'sink') {
  const server = net.createServer(socket => {
    socket.resume().on('end', () => process.send?.({ bytes: socket.bytesRead }))
  })
  server.listen(0, '127.0.0.1', () => {
    process.send?.({ port: (server.address() as AddressInfo).port })
  })
  process.on('message', tellLoaded)
} else if (role === 'writer') {
  let socket = net.connect({ port: Number(port), host: '127.0.0.1' })
  let hasMoved = false
  diagnostics.subscribe('fastsockets:promoted', () => {
    hasMoved = true
  })
  process.on('message', async message => {
    const { size, count, connect } = message as { size: number; count: number; connect?: number }
    if (connect !== undefined) socket = net.connect({ port: connect, host: '127.0.0.1' })
    const chunk = Buffer.alloc(size)
    let [written, drains] = [0, 0]
    for (; written < count && !hasMoved; written++)
      if (!socket.write(chunk)) {
        drains++
        await once(socket, 'drain')
      }
    socket.end()
    tellLoaded()
    process.send?.({ hasMoved, bytes: written * size, drains })
  })
} else if (role === 'reader') {
  net.connect({ port: Number(port), host: '127.0.0.1' }).resume()
} else {
  const target = /^\d+$/.test(port) ? { port: Number(port), host: '127.0.0.1' } : { path: port }
  const socket = net.connect({ ...target, noDelay: true })
  process.on('message', async message => {
    for (let left = (message as { count: number }).count; left > 0; left--) {
      socket.write('hello')
      await once(socket, 'data')
    }
    tellLoaded()
  })
}
