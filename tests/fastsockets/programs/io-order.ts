/**
 * Connections within this process, raw and of http. Each listener sets an immediate and a timer that is due at once,
 * reads a file, and reports the order of the callbacks. A client that connects then reports what comes first of those.
 */
import { once } from 'node:events'
import { stat } from 'node:fs'
import http from 'node:http'
import net, { type AddressInfo, type Server } from 'node:net'

const ROUNDS = 20
const WAIT_MS = 4
const orders = new Set<string>()

/** Long enough for the timer to be due and the file to be known when the event loop goes on. */
function block(): void {
  const endMs = performance.now() + WAIT_MS
  while (performance.now() < endMs);
}

function note(who: string): Promise<void> {
  return new Promise(resolve => {
    let first: string | undefined
    let left = 3
    const come = (name: string): void => {
      first ??= name
      if (--left > 0) return
      orders.add(`${who}: ${first}`)
      resolve()
    }
    setTimeout(come, 1, 'timer')
    stat('/', () => come('file'))
    setImmediate(come, 'immediate')
    block()
  })
}

async function portOf(server: Server): Promise<number> {
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  return (server.address() as AddressInfo).port
}

const echo = net.createServer(socket => {
  socket.on('data', async bytes => {
    await note('server data')
    socket.write(bytes)
  })
})
const echoPort = await portOf(echo)
const socket = net.connect(echoPort, '127.0.0.1')
for (let round = 0; round < ROUNDS; round++) {
  socket.write('x')
  await new Promise(resolve => socket.once('data', () => resolve(note('client data'))))
}
await new Promise(resolve => socket.end(() => resolve(undefined)).once('end', () => resolve(note('end'))))

/** Asks for a connection while libuv reports a file; `block` is time enough for any answer. */
function ask(): Promise<void> {
  const heard: string[] = []
  return new Promise(resolve => {
    stat('/', () => {
      const asking = net.connect(echoPort, '127.0.0.1')
      const isAccepted = once(echo, 'connection').then(() => heard.push('accepted'))
      const isConnected = once(asking, 'connect').then(() => heard.push('connected'))
      setImmediate(() => heard.push('immediate'))
      block()
      void Promise.all([isAccepted, isConnected]).then(() => {
        orders.add(`client asks: ${heard[0]}`)
        asking.destroy()
        resolve()
      })
    })
  })
}

for (let round = 0; round < ROUNDS; round++) await ask()
echo.close()

const web = http.createServer(async (_request, response) => {
  await note('request')
  response.end('y')
})
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
const port = await portOf(web)
for (let round = 0; round < ROUNDS; round++) {
  await new Promise(resolve => {
    http.get({ host: '127.0.0.1', port, agent }, response => {
      const isKnown = note('response')
      response.resume().once('end', () => resolve(isKnown))
    })
  })
}
process.send?.([...orders].sort(), () => process.exit())
