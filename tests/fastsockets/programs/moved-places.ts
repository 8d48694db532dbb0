/**
 * Servers in workers, whose connections start on TCP. argv: 'rr' or 'kernel' (how a cluster chooses the worker), 'thread' (a worker thread), or
 * 'client' or 'client-thread', and a port. A server says its port, and answers each byte with a line, `PID THREAD`. The client opens
 * connections, sends on each until it has moved, and reports which workers have answered.
 */
import cluster from 'node:cluster'
import { once } from 'node:events'
import net, { type AddressInfo, type Socket } from 'node:net'
import { isMainThread, parentPort, threadId, Worker, workerData } from 'node:worker_threads'
import { transportOf } from '../../../fastsockets/index.ts'

const WORKERS = 2
const CONNECTIONS = 8
const PAUSE_MS = 20

export interface Moved {
  readonly transports: readonly string[]
  /** For each connection, the workers that have answered: `PID THREAD`. */
  readonly answers: readonly string[]
}

const [role, port = ''] = isMainThread ? process.argv.slice(2) : (workerData as string[])
const name = `${process.pid} ${threadId}`

function serve(): net.Server {
  const server = net.createServer(socket => {
    socket.on('data', ({ length }) => void socket.write(`${name}\n`.repeat(length))).on('error', () => {})
  })
  return server.listen(0, '127.0.0.1', () => report((server.address() as AddressInfo).port))
}

function report(what: unknown): void {
  if (isMainThread) process.send?.(what)
  else parentPort?.postMessage(what)
}

/** Sends until the socket has moved, and some more. */
async function useOne(socket: Socket): Promise<string[]> {
  const lines = new Set<string>()
  let text = ''
  socket.setEncoding('latin1').on('data', (more: unknown) => {
    text += more
  })
  const isFast = (): boolean => transportOf(socket).transport !== 'tcp'
  for (let more = 0; more < 3; more += isFast() ? 1 : 0) {
    text = ''
    socket.write('.')
    while (!text.endsWith('\n')) await once(socket, 'data')
    for (const line of text.trimEnd().split('\n')) lines.add(line)
    await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
  }
  return [...lines]
}

async function useAll(): Promise<Moved> {
  const sockets = Array.from({ length: CONNECTIONS }, () => net.connect(Number(port), '127.0.0.1'))
  const answers = await Promise.all(sockets.map(useOne))
  const transports = sockets.map(socket => transportOf(socket).transport)
  for (const socket of sockets) socket.destroy()
  return { transports, answers: answers.map(lines => lines.join(',')) }
}

function inThread(workerData: string[]): void {
  new Worker(new URL(import.meta.url), { workerData }).on('message', report)
}

if (role === 'rr' || role === 'kernel') {
  cluster.schedulingPolicy = role === 'rr' ? cluster.SCHED_RR : cluster.SCHED_NONE
  if (cluster.isPrimary) {
    let listening = 0
    for (let i = 0; i < WORKERS; i++) cluster.fork()
    cluster.on('listening', (_worker, { port }) => {
      if (++listening === WORKERS) report(port)
    })
  } else serve()
} else if (role === 'thread' && isMainThread) inThread(['thread'])
else if (role === 'client-thread') inThread(['client', port])
else if (role === 'thread') serve()
else report(await useAll())
