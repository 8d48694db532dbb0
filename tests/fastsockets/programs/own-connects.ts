/**
 * A server and its clients in this process. A client asks for another connection in a 'data' listener. Reports which
 * side is notified first, whether both are before the immediates, and when the client gets what the server sends at
 * once.
 */
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const ROUNDS = 10
/** Long enough for all threads to sleep: the first to speak is then looked at first. */
const LULL_MS = 20

const server = net.createServer()
await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
const { port } = server.address() as AddressInfo
const orders = new Set<string>()

for (const speaksFirst of ['client', 'server', 'nobody']) {
  const first = net.connect(port, '127.0.0.1')
  const [accepted] = (await once(server, 'connection')) as [net.Socket]
  accepted.resume()
  first.resume()
  for (let round = 0; round < ROUNDS; round++) {
    const heard: string[] = []
    await sleep(LULL_MS)
    if (speaksFirst === 'client') first.write('whatever')
    if (speaksFirst === 'server') accepted.write('whatever')
    const second = net.connect(port, '127.0.0.1')
    const isDone = once(second, 'data')
    server.once('connection', socket => {
      heard.push('connection')
      socket.write('welcome')
      setImmediate(() => heard.push('immediate'))
    })
    second.once('connect', () => heard.push('connect'))
    second.once('data', () => heard.push('data'))
    await isDone
    orders.add(heard.join(', '))
    second.destroy()
  }
  first.destroy()
}

/** Several at once: their first words are heard in the order in which they came. */
for (let round = 0; round < ROUNDS; round++) {
  await sleep(LULL_MS)
  const welcome = (socket: net.Socket): unknown => socket.write('welcome')
  server.on('connection', welcome)
  const heard: number[] = []
  const clients = Array.from({ length: 3 }, () => net.connect(port, '127.0.0.1'))
  for (const [i, client] of clients.entries()) client.once('data', () => heard.push(i))
  await Promise.all(clients.map(client => once(client, 'data')))
  server.off('connection', welcome)
  orders.add(`together: ${heard.join(', ')}`)
  for (const client of clients) client.destroy()
}
process.send?.([...orders].sort(), () => process.exit())
