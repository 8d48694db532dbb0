/** Listens, accepts no client, and has no room for more. Prints { port }, and nothing else. argv: host port */
import net from 'node:net'

const [host = '127.0.0.2', port = '0'] = process.argv.slice(2)
/** The kernel completes one connection more than the backlog. */
const BACKLOG = 1
const CLIENTS = 4

const server = net.createServer().listen({ host, port: Number(port), backlog: BACKLOG }, () => {
  for (let i = 0; i < CLIENTS; i++) net.connect(Number(port), host).on('error', () => {})
  // Their connects are for the next ticks, too; after this one nothing is accepted.
  process.nextTick(() => {
    process.send?.({ port: (server.address() as net.AddressInfo).port })
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  })
})
