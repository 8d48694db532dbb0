/**
 * A server that sleeps until one socket of its client rings, and then holds its core while the client, which has its answer,
 * rings by another one: an immediate that the first asked for comes before the second is heard, as Node promises of I/O.
 * It reports how often that was so, and how often not.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'

const ROUNDS = 20
/** Longer than any spin time. */
const REST_MS = 10
/** Long enough for the client to be woken and to write. */
const HOLD_MS = 5

interface Orders {
  inOrder: number
  overtaken: number
}

function serve(): void {
  const orders: Orders = { inOrder: 0, overtaken: 0 }
  let isAwaited = false
  const answerFirst = (socket: Socket): void => {
    isAwaited = true
    setImmediate(() => {
      isAwaited = false
    })
    socket.write('answer')
    const until = performance.now() + HOLD_MS
    while (performance.now() < until);
  }
  const server = net.createServer({ noDelay: true }, socket => {
    socket.on('data', bytes => {
      if (bytes.toString() === 'first') return answerFirst(socket)
      if (isAwaited) orders.overtaken++
      else orders.inOrder++
      socket.write('heard')
    })
    socket.on('end', () => process.send?.(orders))
  })
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
}

async function ask(): Promise<void> {
  const server = fork(fileURLToPath(import.meta.url), ['server'])
  const [port] = (await once(server, 'message')) as [number]
  const [first, second] = [0, 1].map(() => net.connect({ port, host: '127.0.0.1', noDelay: true })) as [
    Socket,
    Socket,
  ]
  await Promise.all([once(first, 'connect'), once(second, 'connect')])
  first.on('data', () => second.write('second'))
  for (let round = 0; round < ROUNDS; round++) {
    await new Promise(resolve => setTimeout(resolve, REST_MS))
    first.write('first')
    // Not before: on a machine that stops for a while, the next question came together with this round's second word.
    await once(second, 'data')
  }
  first.end()
  const [orders] = await once(server, 'message')
  server.kill()
  process.send?.(orders, () => process.exit())
}

if (process.argv[2] === 'server') serve()
else await ask()
