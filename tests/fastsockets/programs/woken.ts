/**
 * A client that sleeps until its server answers, from another process. Each 'data' listener throws; the callbacks that
 * it has scheduled are reported in order.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'

const ROUNDS = 20
/** Longer than any spin time. */
const REST_MS = 10

function serve(): void {
  const server = net.createServer(socket => {
    socket.on('data', bytes => setTimeout(() => socket.write(bytes), REST_MS))
    socket.on('end', () => socket.end())
  })
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
}

async function ask(): Promise<void> {
  const server = fork(fileURLToPath(import.meta.url), ['server'])
  const [port] = (await once(server, 'message')) as [number]
  const socket = net.connect(port, '127.0.0.1')
  await once(socket, 'connect')
  const orders = new Set<string>()
  let heard: string[] = []
  process.on('uncaughtException', error => heard.push(error.message))
  socket.on('data', () => {
    process.nextTick(() => heard.push('tick'))
    queueMicrotask(() => heard.push('microtask'))
    setImmediate(() => heard.push('immediate'))
    throw new Error('thrown')
  })
  for (let round = 0; round < ROUNDS; round++) {
    heard = []
    socket.write('x')
    while (heard.length < 4) await new Promise(resolve => setTimeout(resolve, REST_MS))
    orders.add(heard.join(', '))
  }
  server.kill()
  process.send?.([...orders], () => process.exit())
}

if (process.argv[2] === 'server') serve()
else await ask()
