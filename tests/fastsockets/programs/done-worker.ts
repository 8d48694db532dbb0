/**
 * argv: port, and how many workers. Each connects, writes a result, posts 'done', and computes until it is terminated, which its
 * parent does at once. Reports the transports.
 */
import { once } from 'node:events'
import net from 'node:net'
import { fileURLToPath } from 'node:url'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { transportOf } from '../../../fastsockets/handle/transport.ts'

async function main(port: number, count: number): Promise<void> {
  const transports: unknown[] = []
  for (let i = 0; i < count; i++) {
    const worker = new Worker(fileURLToPath(import.meta.url), { workerData: port })
    const [transport] = await once(worker, 'message')
    await worker.terminate()
    transports.push(transport)
  }
  process.send?.({ transports })
}

function work(port: number): void {
  const socket = net.connect(port, '127.0.0.1', () => {
    setTimeout(() => {
      socket.write('result')
      parentPort?.postMessage(transportOf(socket).transport)
      for (;;);
    }, 20)
  })
}

if (isMainThread) await main(Number(process.argv[2]), Number(process.argv[3]))
else work(workerData as number)
