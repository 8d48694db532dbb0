/** A worker thread that connects three times to the same server, one after the other, and ends by itself. argv: port */
import { once } from 'node:events'
import net from 'node:net'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

if (isMainThread) {
  const worker = new Worker(new URL(import.meta.url), { workerData: Number(process.argv[2]) })
  worker.once('message', transports => process.send?.({ transports }))
  await once(worker, 'exit')
  process.disconnect()
} else {
  const transports: string[] = []
  for (let i = 0; i < 3; i++) {
    const socket = net.connect(workerData, '127.0.0.1')
    await once(socket, 'connect')
    transports.push(transportOf(socket).transport)
    socket.write('x')
    await once(socket, 'data')
    socket.destroy()
    await once(socket, 'close')
  }
  parentPort?.postMessage(transports)
}
