/** argv: INDEX, a URL. A worker thread made with `eval: true` connects and reports its wire. */
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import { Worker } from 'node:worker_threads'

const [index] = process.argv.slice(2)
const CODE = `
const { parentPort, workerData: { port, index } } = require('node:worker_threads')
const socket = require('node:net').connect(port, '127.0.0.1', async () => {
  const { transportOf } = await import(index)
  const { transport, reason } = transportOf(socket)
  parentPort.postMessage({ transport, reason })
  socket.end()
})
`
const server = net.createServer(socket => socket.resume()).listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo
const worker = new Worker(CODE, { eval: true, workerData: { port, index } })
const [wire] = await once(worker, 'message')
await once(worker, 'exit')
server.close()
process.send?.(wire)
process.disconnect?.()
