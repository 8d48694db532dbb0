/**
 * A server in a worker thread that begins to read late, and then reads slowly; a client in the same thread. Sends the digests of
 * what was sent and of what has come.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import { transportOf } from '../../../fastsockets/index.ts'

const LENGTH = 500_000
const LATE_MS = 50

async function read(): Promise<object> {
  const server = net.createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const bytes = Buffer.from(Array.from({ length: LENGTH }, (_, i) => (i * i) >> 8))
  const client = net.connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.end(bytes)
  const [socket] = (await once(server, 'connection')) as [net.Socket]
  const { transport } = transportOf(socket)
  await sleep(LATE_MS)
  const hash = createHash('sha256')
  for await (const part of socket) {
    hash.update(part as Buffer)
    await sleep(1)
  }
  client.destroy()
  server.close()
  return { transport, sent: createHash('sha256').update(bytes).digest('hex'), received: hash.digest('hex') }
}

if (isMainThread) {
  const [digests] = (await once(new Worker(new URL(import.meta.url)), 'message')) as [object]
  process.send?.(digests)
} else {
  parentPort?.postMessage(await read())
}
