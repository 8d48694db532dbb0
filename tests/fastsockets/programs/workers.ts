/** A server in the main thread; workers that connect to it, write without end, and are terminated in the middle of it. */
import net from 'node:net'
import { fileURLToPath } from 'node:url'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { transportOf } from '../../../fastsockets/transport.ts'

const WORKERS = 5

if (isMainThread) {
  const server = net.createServer(socket => {
    socket.on('error', () => {})
    socket.pipe(socket)
  })
  server.listen(0, '127.0.0.1', async () => {
    const transports: unknown[] = []
    for (let i = 0; i < WORKERS; i++) {
      const worker = new Worker(fileURLToPath(import.meta.url), { workerData: server.address() })
      transports.push(await new Promise(resolve => worker.once('message', resolve)))
      await worker.terminate()
    }
    process.send?.({ transports }, () => process.exit())
  })
} else {
  const socket = net.connect((workerData as net.AddressInfo).port, '127.0.0.1', () => {
    parentPort?.postMessage(transportOf(socket))
    socket.write('x')
  })
  socket.on('data', data => socket.write(data))
}
