/**
 * Sends each connection to a child of its own, which destroys it: at once, or a moment later. argv: at-once | later. Says
 * { port }; asked, how many of the sockets it still has. Needs --expose-gc.
 */
import { fork } from 'node:child_process'
import net, { type AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'

const [when = 'at-once'] = process.argv.slice(2)
/** Longer than it takes for the socket to be looked at first. */
const LATER_MS = 100
const child = fork(fileURLToPath(new URL('./destroying-child.js', import.meta.url)), { execArgv: [] })
const sent: WeakRef<net.Socket>[] = []

const server = net.createServer({ pauseOnConnect: true }, socket => {
  sent.push(new WeakRef(socket))
  if (when === 'at-once') child.send('socket', socket)
  else setTimeout(() => child.send('socket', socket), LATER_MS)
})
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
process.on('message', () => {
  globalThis.gc?.()
  process.send?.({ left: sent.filter(ref => ref.deref() !== undefined).length })
})
process.on('disconnect', () => process.exit())
