/** The client of raw-peer.ts. argv: port, echo | sink, polling | waiting, count. Prints what it measured. */
import { connect, type RawSocket } from '../../fastsockets/raw/index.ts'

const [port = '0', what = 'echo', how = 'polling', count = '0'] = process.argv.slice(2)
const SMALL = 64
const LARGE = 64 * 1024
/** Round trips between two looks at the clock: the p50 is that of such batches. */
const BATCH = 16
/** The share that is not counted. */
const WARM_UP = 0.2

const socket = await connect({ port: Number(port), host: '127.0.0.1' })
const { transport } = socket.transport
if (transport !== 'shm') throw new Error(`the bench ran over ${transport}`)
const result = what === 'echo' ? await measureEcho(Number(count)) : await measureStream(Number(count))
socket.close()
console.log(JSON.stringify(result))
process.stdin.resume().on('end', () => process.exit())

async function measureEcho(count: number): Promise<object> {
  const message = Buffer.alloc(SMALL, 1)
  const buffer = Buffer.alloc(SMALL)
  const timesUs = new Float64Array(Math.floor(count / BATCH))
  for (let i = 0; i < timesUs.length; i++) {
    const startMs = performance.now()
    if (how === 'polling') for (let j = 0; j < BATCH; j++) pollOnce(message, buffer)
    else for (let j = 0; j < BATCH; j++) await waitOnce(message, buffer)
    timesUs[i] = ((performance.now() - startMs) * 1000) / BATCH
  }
  const sorted = timesUs.slice(timesUs.length * WARM_UP).sort()
  return { p50Us: sorted[sorted.length >> 1], p99Us: sorted[Math.floor(sorted.length * 0.99)] }
}

function pollOnce(message: Buffer, buffer: Buffer): void {
  let sent = socket.trySend(message)
  while (sent < SMALL) sent += socket.trySend(message.subarray(sent))
  for (let received = 0; received < SMALL; ) received += socket.tryRecv(buffer) ?? 0
}

async function waitOnce(message: Buffer, buffer: Buffer): Promise<void> {
  await socket.send(message)
  for (let received = 0; received < SMALL; ) received += await socket.recv(buffer)
}

async function measureStream(count: number): Promise<object> {
  const chunk = Buffer.alloc(LARGE, 2)
  const startMs = performance.now()
  for (let i = 0; i < count; i++) {
    if (how === 'polling') sendAll(socket, chunk)
    else await socket.send(chunk)
  }
  socket.shutdown()
  await socket.recv(Buffer.alloc(1))
  return { bytesPerSecond: (count * LARGE * 1000) / (performance.now() - startMs) }
}

function sendAll(socket: RawSocket, chunk: Buffer): void {
  for (let at = 0; at < chunk.length; ) at += socket.trySend(at === 0 ? chunk : chunk.subarray(at))
}
