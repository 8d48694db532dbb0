/**
 * A server of two listeners that can be stopped in the middle of its turn, and a client of both. argv: server | client ports.
 *
 * Both follow commands, and keep a log. The server stands still from `block` until something arrives on its standard
 * input; after `block, close` it then closes the first listener, before it accepts a client.
 */
import { once } from 'node:events'
import { readSync } from 'node:fs'
import net from 'node:net'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

const [role, ...ports] = process.argv.slice(2)
const log: string[] = []
const tell = (message: object, then?: () => void): void => void process.send?.(message, then)
process.on('disconnect', () => process.exit())

if (role === 'server') {
  let buffered = 0
  /** Says something first. */
  let greets = false
  const listeners = [0, 1].map(i =>
    net.createServer(socket => {
      log.push(`${i} connection`)
      setImmediate(() => log.push(`${i} immediate`))
      socket.on('data', data => {
        log.push(`${i} data ${data}`)
        if (data.toString() === 'close the first') listeners[0]?.close()
        socket.write('heard')
      })
      if (greets) socket.write('welcome')
      socket.on('end', () => log.push(`${i} end`))
      socket.on('error', error => log.push(`${i} ${error.message}`))
      socket.on('close', () => {
        buffered += transportOf(socket).counts?.bytesBuffered ?? 0
        log.push(`${i} close`)
      })
    }),
  )
  for (const listener of listeners) await once(listener.listen(0, '127.0.0.1'), 'listening')
  const stop = (): void => void readSync(0, Buffer.alloc(1))
  process.on('message', ({ deed }: { deed: string }) => {
    if (deed === 'close') listeners[0]?.close()
    if (deed === 'greet') greets = true
    if (deed === 'block') tell({}, stop)
    else if (deed === 'block, close')
      tell({}, () => {
        stop()
        listeners[0]?.close()
      })
    else tell({ log: log.splice(0), buffered })
  })
  tell({ ports: listeners.map(listener => (listener.address() as net.AddressInfo).port) })
} else {
  const sockets: net.Socket[] = []
  const ends: Promise<void>[] = []
  const connect = async (i: number): Promise<void> => {
    const socket = net.connect(Number(ports[i]), '127.0.0.1')
    sockets[i] = socket
    socket.on('data', data => log.push(`${i} data ${data}`))
    socket.on('error', error => log.push(`${i} ${error.message.replace(/\d+$/, 'port')}`))
    ends[i] = new Promise(resolve => {
      socket.on('close', () => {
        log.push(`${i} close`)
        resolve()
      })
    })
    await once(socket, 'connect').then(
      () => log.push(`${i} connect ${typeof socket.localPort}`),
      () => {},
    )
  }
  const deeds: Record<string, (i: number) => unknown> = {
    connect,
    closed: i => ends[i],
    'write and go': async i => {
      await new Promise(resolve => sockets[i]?.write('early', resolve))
      sockets[i]?.destroy()
      return ends[i]
    },
    go: i => {
      sockets[i]?.destroy()
      return ends[i]
    },
    ask: async i => {
      sockets[i]?.write('hello')
      await once(sockets[i] as net.Socket, 'data')
    },
    // Of a listener of which it hears over the other one that it is closed.
    'connect to the closed one': async i => {
      sockets[i]?.write('close the first')
      await once(sockets[i] as net.Socket, 'data')
      await connect(0)
      return ends[0]
    },
  }
  process.on('message', async ({ what, of }: { what: string; of: number }) => {
    await deeds[what]?.(of)
    const socket = sockets[of] as net.Socket
    tell({ log: log.splice(0), wire: transportOf(socket).transport })
  })
  tell({})
}
