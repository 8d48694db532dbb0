/**
 * A server on TCP, one on a unix name, and a client of a given port, which report their messages on the diagnostics
 * channels of `node:net`.
 */
import diagnostics from 'node:diagnostics_channel'
import net from 'node:net'

const NAMES = [
  'net.client.socket',
  'net.server.socket',
  'tracing:net.server.listen:asyncStart',
  'tracing:net.server.listen:asyncEnd',
  'tracing:net.server.listen:error',
]
for (const name of NAMES) diagnostics.subscribe(name, () => process.send?.({ told: name }))

const servers = [0, 1].map(() => net.createServer(socket => socket.pipe(socket)))
servers[1]?.listen(`\0fastsockets-channels-${process.pid}`, () => {
  servers[0]?.listen(0, '127.0.0.1', () => {
    process.send?.({ port: (servers[0]?.address() as net.AddressInfo).port })
  })
})
process.on('disconnect', () => process.exit())
process.on('message', ({ port }: { port?: number }) => {
  const report = (): void => void process.send?.({ isOver: true })
  if (port === undefined) return report()
  const socket = net.connect(port, '127.0.0.1', () => socket.end())
  socket.resume().on('close', report)
})
