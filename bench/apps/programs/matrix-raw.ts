/** The product of matrix.ts over raw sockets; the coordinator selects with a completion queue. argv as matrix-net.ts. */
import { CompletionQueue, connect, listen, type RawSocket } from '../../../fastsockets/raw/index.ts'
import {
  BLOCKS_AHEAD,
  bytesOf,
  messageLength,
  multiply,
  Product,
  printFigure,
  WORKER_COUNT,
} from './matrix.ts'
import { HOST } from './program.ts'

const [role, size, port] = process.argv.slice(2)
const n = Number(size)
process.stdin.resume().once('end', () => process.exit())

if (role === 'coordinator') await coordinate()
else await work()

/** A worker as the coordinator sees it: the result that is arriving. */
interface Arrival {
  readonly numbers: Float64Array
  readonly bytes: Buffer
  length: number
}

async function coordinate(): Promise<void> {
  const product = new Product(n)
  const server = await listen({ host: HOST })
  console.log(JSON.stringify({ port: server.address.port }))
  const queue = new CompletionQueue()
  const arrivals = new Map<unknown, Arrival>()
  const sockets: RawSocket[] = []
  while (sockets.length < WORKER_COUNT) sockets.push(await server.accept())

  const startMs = performance.now()
  const task = new Float64Array(messageLength(n))
  const give = async (socket: RawSocket): Promise<void> => {
    if (product.takeTask(task)) await socket.send(bytesOf(task))
  }
  for (const socket of sockets) {
    const numbers = new Float64Array(messageLength(n))
    arrivals.set(socket, { numbers, bytes: bytesOf(numbers), length: 0 })
    queue.add(socket)
    await socket.send(bytesOf(product.b))
    for (let i = 0; i < BLOCKS_AHEAD; i++) await give(socket)
  }
  for (let isDone = false; !isDone; ) {
    const socket = (await queue.wait()) as RawSocket
    const arrival = arrivals.get(socket) as Arrival
    const length = socket.tryRecv(arrival.bytes.subarray(arrival.length))
    if (length === 0) throw new Error('a worker has left')
    arrival.length += length ?? 0
    if (arrival.length < arrival.bytes.length) continue
    arrival.length = 0
    isDone = product.putResult(arrival.numbers)
    if (!isDone) await give(socket)
  }
  printFigure(n, startMs)
  product.verify()
  for (const socket of sockets) socket.close()
  server.close()
}

async function work(): Promise<void> {
  const socket = await connect({ port: Number(port), host: HOST })
  const { transport, reason } = socket.transport
  if (transport === 'tcp') throw new Error(`raw sockets were on TCP: ${reason?.text}`)
  const b = new Float64Array(n * n)
  const task = new Float64Array(messageLength(n))
  const result = new Float64Array(messageLength(n))
  await receive(socket, b)
  while (await receive(socket, task)) {
    multiply(task, b, n, result)
    await socket.send(bytesOf(result))
  }
  socket.close()
  console.log('{}')
}

/** False at the end. */
async function receive(socket: RawSocket, numbers: Float64Array): Promise<boolean> {
  const bytes = bytesOf(numbers)
  for (let at = 0; at < bytes.length; ) {
    const length = await socket.recv(bytes.subarray(at))
    if (length === 0) return false
    at += length
  }
  return true
}
