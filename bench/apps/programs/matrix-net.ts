/** The product of matrix.ts over node:net. argv: coordinator n | worker n port. Knows nothing of Fast Sockets. */
import net from 'node:net'
import {
  BLOCKS_AHEAD,
  bytesOf,
  messageLength,
  multiply,
  Product,
  printFigure,
  WORKER_COUNT,
} from './matrix.ts'
import { HOST, portOf } from './program.ts'

const [role, size, port] = process.argv.slice(2)
const n = Number(size)

if (role === 'coordinator') await coordinate()
else work()
process.stdin.resume().once('end', () => process.exit())

/** Calls `use` whenever `numbers` are full; `use` returns the numbers to fill next. */
function receiveNumbers(
  socket: net.Socket,
  numbers: Float64Array,
  use: (full: Float64Array) => Float64Array,
): void {
  let target = bytesOf(numbers)
  let at = 0
  let current = numbers
  socket.on('data', chunk => {
    for (let from = 0; from < chunk.length; ) {
      const taken = chunk.copy(target, at, from)
      from += taken
      at += taken
      if (at < target.length) continue
      current = use(current)
      target = bytesOf(current)
      at = 0
    }
  })
}

async function coordinate(): Promise<void> {
  const product = new Product(n)
  const sockets: net.Socket[] = []
  const server = net.createServer({ noDelay: true }, socket => {
    sockets.push(socket)
    if (sockets.length === WORKER_COUNT) begin()
  })
  console.log(JSON.stringify({ port: await portOf(server) }))

  function begin(): void {
    const startMs = performance.now()
    for (const socket of sockets) {
      socket.write(bytesOf(product.b))
      receiveNumbers(socket, new Float64Array(messageLength(n)), result => {
        if (product.putResult(result)) end(startMs)
        else give(socket)
        return result
      })
      for (let i = 0; i < BLOCKS_AHEAD; i++) give(socket)
    }
  }

  function give(socket: net.Socket): void {
    const task = new Float64Array(messageLength(n))
    if (product.takeTask(task)) socket.write(bytesOf(task))
  }

  function end(startMs: number): void {
    printFigure(n, startMs)
    product.verify()
    for (const socket of sockets) socket.end()
    server.close()
  }
}

function work(): void {
  const socket = net.connect({ port: Number(port), host: HOST, noDelay: true })
  const b = new Float64Array(n * n)
  const task = new Float64Array(messageLength(n))
  receiveNumbers(socket, b, full => {
    if (full !== b) {
      const result = new Float64Array(messageLength(n))
      multiply(task, b, n, result)
      socket.write(bytesOf(result))
    }
    return task
  })
  socket.on('end', () => console.log('{}'))
}
