/**
 * Raw sockets, polling or with promises. Each connection serves one measurement, because a polling server serves one
 * at a time.
 */
import { connect, listen, type RawServer, type RawSocket } from '../../fastsockets/raw/index.ts'
import type { LatencyHistogram } from '../latency-histogram.ts'
import { type Client, HELD_SIZE, HELD_WINDOW, type Held, openMany, type Received } from './contestant.ts'
import { leaveWithParent } from './parent.ts'

const HOST = '127.0.0.1'
/** The size of a read of `node:net`. */
const BUFFER_SIZE = 64 * 1024
const ANSWER_SIZE_MAX = 200

interface Ports {
  readonly echo: number
  readonly sink: number
}

export async function serveRaw(polls: boolean): Promise<string> {
  const echo = await listen({ host: HOST })
  const sink = await listen({ host: HOST })
  void acceptAll(echo, polls ? pollEcho : echoAll)
  void acceptAll(sink, polls ? pollSink : countAll)
  return JSON.stringify({ echo: echo.address.port, sink: sink.address.port } satisfies Ports)
}

async function acceptAll(
  server: RawServer,
  serve: (socket: RawSocket) => void | Promise<void>,
): Promise<void> {
  // One after the other if `serve` polls, else at the same time.
  for await (const socket of server) {
    Promise.resolve(serve(socket)).then(
      () => socket.close(),
      () => socket.close(),
    )
  }
}

function pollIn(socket: RawSocket, buffer: Buffer): number | undefined {
  leaveWithParent()
  return socket.tryRecv(buffer)
}

function pollEcho(socket: RawSocket): void {
  const buffer = Buffer.allocUnsafeSlow(BUFFER_SIZE)
  for (;;) {
    const length = pollIn(socket, buffer)
    if (length === 0) return
    if (length !== undefined) pollOut(socket, buffer, length)
  }
}

function pollSink(socket: RawSocket): void {
  const buffer = Buffer.allocUnsafeSlow(BUFFER_SIZE)
  let bytes = 0
  let startMs = 0
  for (;;) {
    const length = pollIn(socket, buffer)
    if (length === undefined) continue
    if (length === 0) break
    if (bytes === 0) startMs = performance.now()
    bytes += length
  }
  const answer = answerOf(bytes, startMs)
  pollOut(socket, answer, answer.length)
}

async function echoAll(socket: RawSocket): Promise<void> {
  const buffer = Buffer.allocUnsafeSlow(BUFFER_SIZE)
  for (;;) {
    const length = await socket.recv(buffer)
    if (length === 0) return
    await socket.send(buffer.subarray(0, length))
  }
}

async function countAll(socket: RawSocket): Promise<void> {
  const buffer = Buffer.allocUnsafeSlow(BUFFER_SIZE)
  let bytes = 0
  let startMs = 0
  for (;;) {
    const length = await socket.recv(buffer)
    if (length === 0) break
    if (bytes === 0) startMs = performance.now()
    bytes += length
  }
  await socket.send(answerOf(bytes, startMs))
}

function answerOf(bytes: number, startMs: number): Buffer {
  const received: Received = { bytes, ms: performance.now() - startMs }
  return Buffer.from(JSON.stringify(received).padEnd(ANSWER_SIZE_MAX))
}

function pollOut(socket: RawSocket, bytes: Buffer, length: number): void {
  for (let at = 0; at < length; ) {
    leaveWithParent()
    at += socket.trySend(at === 0 && length === bytes.length ? bytes : bytes.subarray(at, length))
  }
}

export async function dialRaw(address: string, polls: boolean): Promise<Client> {
  const ports = JSON.parse(address) as Ports
  const open = async (port: number): Promise<RawSocket> => {
    const socket = await connect({ port, host: HOST })
    const { transport, reason } = socket.transport
    if (transport !== 'shm') throw new Error(`on ${transport} where shm was meant: ${JSON.stringify(reason)}`)
    return socket
  }
  const first: Client = {
    pingPong: async (size, ms, latencies) => {
      const socket = await open(ports.echo)
      if (polls) pollPingPong(socket, size, ms, latencies)
      else await pingPong(socket, size, ms, latencies)
      socket.close()
    },
    stream: async (size, ms) => {
      const socket = await open(ports.sink)
      const received = await (polls ? pollStream(socket, size, ms) : stream(socket, size, ms))
      socket.close()
      return received
    },
    close: async () => {},
  }
  if (polls) return first
  return {
    ...first,
    connect: async (ms, latencies) => {
      const endMs = performance.now() + ms
      for (let startMs = performance.now(); startMs < endMs; startMs = performance.now()) {
        const socket = await open(ports.echo)
        latencies.recordMs(performance.now() - startMs)
        await hearFrom(socket)
        socket.close()
      }
    },
    hold: async count => {
      const sockets = await openMany(count, async () => await hearFrom(await open(ports.echo)))
      return new HeldRawSockets(sockets)
    },
  }
}

/** An echo shows that the server has accepted. */
async function hearFrom(socket: RawSocket): Promise<RawSocket> {
  const byte = Buffer.alloc(1, 1)
  await socket.send(byte)
  await socket.recv(byte)
  return socket
}

function pollPingPong(socket: RawSocket, size: number, ms: number, latencies: LatencyHistogram): void {
  const message = Buffer.alloc(size, 1)
  const buffer = Buffer.alloc(Math.max(size, 1))
  const endMs = performance.now() + ms
  let startMs = performance.now()
  while (startMs < endMs) {
    let sent = socket.trySend(message)
    for (let received = 0; received < size; ) {
      // Sends on between receives: a message larger than the ring comes back before all of it has left.
      if (sent < size) sent += socket.trySend(message.subarray(sent))
      const length = pollIn(socket, buffer)
      if (length === 0) throw new Error('the other half is gone')
      received += length ?? 0
    }
    const nowMs = performance.now()
    latencies.recordMs(nowMs - startMs)
    startMs = nowMs
  }
}

async function pingPong(
  socket: RawSocket,
  size: number,
  ms: number,
  latencies: LatencyHistogram,
): Promise<void> {
  const message = Buffer.alloc(size, 1)
  const buffer = Buffer.alloc(Math.max(size, 1))
  const endMs = performance.now() + ms
  let startMs = performance.now()
  while (startMs < endMs) {
    const sent = socket.send(message)
    for (let received = 0; received < size; ) received += await socket.recv(buffer)
    await sent
    const nowMs = performance.now()
    latencies.recordMs(nowMs - startMs)
    startMs = nowMs
  }
}

async function pollStream(socket: RawSocket, size: number, ms: number): Promise<Received> {
  const chunk = Buffer.alloc(size, 1)
  const endMs = performance.now() + ms
  do pollOut(socket, chunk, size)
  while (performance.now() < endMs)
  return await end(socket)
}

async function stream(socket: RawSocket, size: number, ms: number): Promise<Received> {
  const chunk = Buffer.alloc(size, 1)
  const endMs = performance.now() + ms
  do await socket.send(chunk)
  while (performance.now() < endMs)
  return await end(socket)
}

async function end(socket: RawSocket): Promise<Received> {
  socket.shutdown()
  const answer = Buffer.alloc(ANSWER_SIZE_MAX)
  let length = 0
  while (length < ANSWER_SIZE_MAX) length += await socket.recv(answer.subarray(length))
  return JSON.parse(answer.toString()) as Received
}

class HeldRawSockets implements Held {
  readonly #sockets: readonly RawSocket[]

  constructor(sockets: readonly RawSocket[]) {
    this.#sockets = sockets
  }

  async roundTrips(ms: number, latencies: LatencyHistogram): Promise<void> {
    const sockets = this.#sockets
    const window = Math.min(HELD_WINDOW, sockets.length)
    const message = Buffer.alloc(HELD_SIZE, 1)
    const endMs = performance.now() + ms
    // Each runner has sockets of its own: a socket never has two round trips under way.
    const runners = Array.from({ length: window }, async (_, first) => {
      const buffer = Buffer.alloc(HELD_SIZE)
      for (
        let at = first;
        performance.now() < endMs;
        at = at + window < sockets.length ? at + window : first
      ) {
        const socket = sockets[at] as RawSocket
        const startMs = performance.now()
        const sent = socket.send(message)
        for (let received = 0; received < HELD_SIZE; ) received += await socket.recv(buffer)
        await sent
        latencies.recordMs(performance.now() - startMs)
      }
    })
    await Promise.all(runners)
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.close()
  }
}
