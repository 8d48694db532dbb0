/**
 * A server whose worker connects to it and reads nothing. Says how many bytes the main thread knows to be unread, over a budget
 * that is smaller; then connects, and terminates its worker, when it is asked to.
 */
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { transportOf } from '../../../fastsockets/handle/transport.ts'
import { keptBytes, setUnreadBudget } from '../../../fastsockets/stream/unread-budget.ts'
import { until } from '../../support/until.ts'

const UNREAD = 1 << 20

interface Wish {
  readonly connect?: number
}

async function main(): Promise<void> {
  let isFirst = true
  const server = net.createServer(socket => {
    socket.on('error', () => {})
    if (isFirst) socket.write(Buffer.alloc(UNREAD))
    isFirst = false
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const worker = new Worker(fileURLToPath(import.meta.url), { workerData: port })
  await until('unread bytes', () => keptBytes() > UNREAD - 65536)
  setUnreadBudget(UNREAD / 4)
  process.on('message', async ({ connect }: Wish) => {
    if (connect === undefined) {
      await worker.terminate()
      await until('the end of what was unread', () => keptBytes() < UNREAD / 4)
      return process.send?.({ kept: keptBytes() })
    }
    const socket = net.connect(connect, '127.0.0.1')
    await once(socket, 'connect')
    process.send?.(transportOf(socket))
    socket.destroy()
  })
  process.send?.({ port, kept: keptBytes() })
}

if (isMainThread) await main()
else {
  net.connect(workerData as number, '127.0.0.1').pause()
  // A paused socket keeps no thread alive.
  parentPort?.on('message', () => {})
}
