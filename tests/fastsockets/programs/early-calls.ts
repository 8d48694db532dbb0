/** Scenarios: clients that call before a server listens, or before it accepts. */
import { once } from 'node:events'
import net from 'node:net'
import { bothClosed, closed, connect, hidePort, log, sortByName, watch } from './dialogue.ts'

/** A connection, which says the wire, and then its port; its server goes on listening. */
async function firstCall(): Promise<{ server: net.Server; port: number }> {
  const pair = await connect()
  const { port } = pair.server.address() as net.AddressInfo
  pair.client.end()
  await bothClosed(pair)
  return { server: pair.server, port }
}

export async function connectBeforeListen(): Promise<void> {
  const { server: first, port } = await firstCall()
  await new Promise(resolve => first.close(resolve))
  const client = net.connect(port, '127.0.0.1')
  const server = net.createServer().listen(port, '127.0.0.1')
  watch('early', client)
  await Promise.all([closed(client), once(server, 'listening')])
  const late = net.connect(port, '127.0.0.1')
  watch('late', late)
  await once(late, 'connect')
  server.close()
  late.destroy()
  await closed(late)
  sortByName()
  hidePort(port)
}

export async function closedBeforeItAccepts(): Promise<void> {
  const { server, port } = await firstCall()
  server.on('connection', () => log.push('server connection'))
  const client = net.connect(port, '127.0.0.1', () => log.push('client connect'))
  watch('client', client)
  // The client has called by then, and the server has not accepted.
  process.nextTick(() => server.close())
  await closed(client)
  hidePort(port)
}

/** A client that calls before the event loop looks for I/O is accepted in that turn, before its immediates. */
export async function closedByAnImmediate(): Promise<void> {
  const { server, port } = await firstCall()
  // The pair's own listener is not of interest.
  server.removeAllListeners('connection').on('connection', socket => {
    log.push('server connection')
    socket.end()
  })
  // Long enough for all threads to sleep.
  await new Promise(resolve => setTimeout(resolve, 20))
  const client = net.connect(port, '127.0.0.1')
  watch('client', client)
  await new Promise(resolve => setImmediate(resolve))
  server.close()
  await closed(client)
  sortByName()
  hidePort(port)
}
