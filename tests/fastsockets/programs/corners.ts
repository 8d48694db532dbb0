/**
 * A server and a client in corners of the API. argv: 'server', or 'client', a port and 'all' if each connection is to move before it is used.
 * Each side does what it is told, and says what it has seen.
 */
import diagnostics from 'node:diagnostics_channel'
import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'

interface Order {
  readonly options: net.ServerOpts
  readonly maxConnections?: number
}

const [role, port, moves] = process.argv.slice(2)
const log: string[] = []
const turn = (): Promise<void> => new Promise(resolve => setTimeout(resolve, 20))

function serve({ options, maxConnections }: Order): net.Server {
  let count = 0
  const server = net.createServer(options, socket => {
    const id = ++count
    log.push(`${id} accepted`)
    if (socket.isPaused()) setTimeout(() => socket.resume(), 100)
    socket
      .on('data', data => void (socket.writable && socket.write(data)))
      .on('end', () => {
        log.push(`${id} end`)
        if (options.allowHalfOpen) socket.end('goodbye')
      })
      .on('error', ({ code }: NodeJS.ErrnoException) => log.push(`${id} ${code}`))
      .on('close', hadError => log.push(`${id} close ${hadError}`))
  })
  if (maxConnections !== undefined) server.maxConnections = maxConnections
  server.on('drop', drop => {
    const hasNames = [drop?.localAddress, drop?.remoteAddress, drop?.remotePort].every(Boolean)
    log.push(`drop ${hasNames}`)
  })
  return server.on('close', () => log.push('server close')).listen(0, '127.0.0.1')
}

if (role === 'server') {
  let server: net.Server
  process.on('message', async (message: Order & { run: string }) => {
    const { run } = message
    if (run === 'serve') {
      server = serve(message)
      await once(server, 'listening')
      process.send?.((server.address() as AddressInfo).port)
    }
    if (run === 'close') {
      server.close()
      process.send?.('closing')
    }
    if (run === 'count') server.getConnections((_, count) => process.send?.(count))
    if (run === 'log') process.send?.(log.splice(0))
  })
} else {
  let moved = 0
  const sockets: Socket[] = []
  diagnostics.subscribe('fastsockets:promoted', () => {
    moved++
  })
  const open = async (wanted: number, allowHalfOpen: boolean): Promise<string[]> => {
    moved = 0
    const seen: string[] = []
    for (let i = 0; i < wanted; i++) {
      const socket = net.connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen })
      const id = sockets.push(socket)
      let text = ''
      socket
        .on('data', data => {
          text += data
        })
        .on('end', () => log.push(`${id} end ${text.replace(/^(ping)+/, '')}`))
        .on('error', ({ code }: NodeJS.ErrnoException) => log.push(`${id} ${code}`))
        .on('close', () => log.push(`${id} close`))
      await once(socket, 'connect')
      const before = moved
      for (let sent = 0; sent < 5 || (moves === 'all' && moved === before); sent++) {
        socket.write('ping')
        await once(socket, 'data')
      }
      seen.push(`${id} answered`)
    }
    return seen
  }
  process.on(
    'message',
    async ({ run, count = 1, half = false }: { run: string; count?: number; half?: boolean }) => {
      if (run === 'open') process.send?.(await open(count, half))
      if (run === 'dropped') {
        const socket = net
          .connect(Number(port), '127.0.0.1')
          .resume()
          .on('error', () => {})
        await once(socket, 'close')
        process.send?.('closed')
      }
      if (run === 'end') {
        const socket = sockets[count - 1] as Socket
        socket.end('bye')
        if (!socket.closed) await once(socket, 'close')
        await turn()
        process.send?.(log.splice(0))
      }
      if (run === 'destroy') {
        for (const socket of sockets) socket.destroy()
        process.send?.('destroyed')
      }
    },
  )
}
