/**
 * An ordinary program with worker threads. It knows nothing of Fast Sockets but for the report of which wire each
 * connection used. argv: what to do, and the seed of its random numbers.
 */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { isMainThread, type MessagePort, parentPort, Worker, workerData } from 'node:worker_threads'
import { transportOf } from '../../../fastsockets/handle/transport.ts'
import { patterned } from '../../support/pattern.ts'
import { Random } from '../../support/random.ts'
import { descriptorCount, memfdMappingCount } from '../../support/resources.ts'
import { until } from '../../support/until.ts'

const WORKERS = 50
const SOCKETS_EACH = 2
const BYTES = 3_000_000
/** What is offered. */
const CHUNK = 1_000_000
const CHUNKS = 40
/** No byte of a pattern. */
const FILL = 0xfe

interface Task {
  readonly role: string
  readonly ports: Readonly<Record<string, number>>
}

// The main thread.

const programs: Record<string, (random: Random) => Promise<object>> = {
  /** Asks for the port of another process; then each talks with all others. */
  talk: async () => {
    const main = await listen(socket => socket.pipe(socket))
    const server = start({ role: 'serve', ports: {} })
    const [worker] = await once(server, 'message')
    process.send?.({ worker })
    const [{ other }] = await once(process, 'message')
    const [client] = await once(start({ role: 'call', ports: { main, worker, other } }), 'message')
    return { fromWorker: client, fromMain: await callAll({ worker, other }) }
  },

  /** Workers stream both ways with the main thread, and are terminated whenever it is. */
  terminate: async random => {
    let opened = 0
    let closed = 0
    const port = await listen(socket => {
      opened++
      socket.on('close', () => closed++)
      socket.pipe(socket)
    })
    const wires: Record<string, number> = {}
    const round = async (): Promise<void> => {
      const worker = start({ role: 'stream', ports: { main: port } })
      const [wire] = await once(worker, 'message')
      wires[wire] = (wires[wire] ?? 0) + 1
      await sleep(random.within(0, 5))
      await worker.terminate()
    }
    // The first one opens the listener for handoffs.
    await round()
    await until('the first sockets to close', () => closed === opened)
    const descriptors = descriptorCount()
    for (let i = 0; i < WORKERS; i++) {
      await round()
      process.send?.({ terminated: i + 1 })
    }
    await until('all sockets to close', () => closed === opened)
    return { wires, descriptors: descriptorCount() - descriptors, mappings: memfdMappingCount() }
  },

  /** A worker serves, and is terminated on request. This process stays until it is stopped: the test inspects it. */
  serve: async () => {
    await listen(socket => socket.resume())
    const worker = start({ role: 'flood', ports: {} })
    const [port] = await once(worker, 'message')
    process.send?.({ port })
    await once(process, 'message')
    await worker.terminate()
    process.send?.({ terminated: true, mappings: memfdMappingCount() })
    await once(process, 'message')
    return {}
  },

  /**
   * A worker has large writes on offer, and is terminated on order. What it had as memory goes to the next worker. Then there
   * is a file.
   */
  offer: async () => {
    const worker = start({ role: 'offer', ports: {} })
    const [port] = await once(worker, 'message')
    process.send?.({ port })
    const [{ file }] = await once(process, 'message')
    await worker.terminate()
    await once(start({ role: 'fill', ports: {} }), 'message')
    writeFileSync(file, '')
    await once(process, 'message')
    return {}
  },

  /** A worker says something to the main thread, and ends. */
  exit: async () => {
    const accepted: net.Socket[] = []
    let text = ''
    const port = await listen(socket => {
      accepted.push(socket)
      socket.on('data', data => {
        text += data
      })
    })
    const [code] = await once(start({ role: 'say-and-exit', ports: { main: port } }), 'exit')
    const [socket] = await until('the end', () => accepted[0]?.closed && accepted)
    return { code, text, wire: socket && wireOf(socket), mappings: memfdMappingCount() }
  },
}

function start(task: Task): Worker {
  return new Worker(fileURLToPath(import.meta.url), { workerData: task })
}

// Both threads.

async function listen(serve: (socket: net.Socket) => void): Promise<number> {
  const server = net.createServer(socket => {
    socket.on('error', () => {})
    serve(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as net.AddressInfo).port
}

/** Which wire leads to each port; or what went wrong with the echo. */
async function callAll(ports: Task['ports']): Promise<Record<string, string>> {
  const calls = Object.entries(ports).map(async ([name, port]) => [name, await call(port)])
  return Object.fromEntries(await Promise.all(calls))
}

async function call(port: number): Promise<string> {
  const socket = net.connect(port, '127.0.0.1')
  const sent = new Random(port).bytes(BYTES)
  const received: Buffer[] = []
  socket.on('data', data => received.push(data))
  socket.end(sent)
  await once(socket, 'end')
  return Buffer.concat(received).equals(sent) ? wireOf(socket) : 'other bytes'
}

function wireOf(socket: net.Socket): string {
  const { transport, reason } = transportOf(socket)
  return reason === undefined ? transport : `${transport} ${reason.code}`
}

// A worker.

const roles: Record<string, (ports: Task['ports']) => Promise<void>> = {
  serve: async () => parentPort?.postMessage(await listen(socket => socket.pipe(socket))),

  call: async ports => parentPort?.postMessage(await callAll(ports)),

  stream: async ports => {
    for (let i = 0; i < SOCKETS_EACH; i++) {
      const socket = net.connect(ports.main as number, '127.0.0.1')
      socket.on('data', data => socket.write(data))
      await once(socket, 'connect')
      socket.write(Buffer.alloc(50_000))
      if (i === 0) parentPort?.postMessage(wireOf(socket))
    }
  },

  flood: async () => {
    const port = await listen(socket => {
      const chunk = Buffer.alloc(50_000)
      const write = (): void => {
        while (socket.write(chunk));
        socket.once('drain', write)
      }
      write()
    })
    parentPort?.postMessage(port)
  },

  offer: async () => {
    const port = await listen(socket => {
      socket.cork()
      for (let i = 0; i < CHUNKS; i++) socket.write(patterned(i * CHUNK, CHUNK))
      socket.uncork()
    })
    parentPort?.postMessage(port)
  },

  fill: async () => {
    const bytes = Array.from({ length: 2 * CHUNKS }, () => Buffer.allocUnsafeSlow(CHUNK).fill(FILL))
    parentPort?.postMessage(bytes.length)
    await once(parentPort as MessagePort, 'message')
  },

  'say-and-exit': async ports => {
    const socket = net.connect(ports.main as number, '127.0.0.1')
    await once(socket, 'connect')
    process.on('exit', () => socket.write(' and last words'))
    socket.write('words')
    process.exit(3)
  },
}

if (isMainThread) {
  const [, , name = '', seed = '0'] = process.argv
  const report = await programs[name]?.(new Random(Number(seed)))
  process.send?.(report ?? {}, () => process.exit())
} else {
  const { role, ports } = workerData as Task
  await roles[role]?.(ports)
}
