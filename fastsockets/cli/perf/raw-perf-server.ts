/** The server of `fastsockets perf` over raw sockets: shared memory if available, else TCP. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { listen, type RawSocket } from '../../raw/index.ts'
import type { HostPort } from '../host-port.ts'
import { decodeAsk, encodeHello, encodeTotal, PERF_MESSAGE_SIZE } from './perf-layout.ts'
import { ASK_TIMEOUT_MS, CALLERS_MAX, type PerfServer, RECEIVE_SIZE } from './perf-server.ts'
import { StopWatch } from './stop-watch.ts'

/** How long one test may poll before the event loop runs and others are served. */
const POLL_MS = 2
/** Polls between two readings of the clock. */
const LOOKS = 256

export async function openRawServer({ host, port }: HostPort): Promise<PerfServer> {
  const server = await listen({ host, port })
  const callers = new Set<RawSocket>()
  void (async () => {
    for await (const socket of server) {
      if (callers.size >= CALLERS_MAX) {
        socket.close()
        continue
      }
      callers.add(socket)
      // A client that leaves in mid-test is no failure of the server.
      serve(socket)
        .catch(() => {})
        .finally(() => {
          callers.delete(socket)
          socket.close()
        })
    }
  })()
  return { port: server.address.port }
}

async function serve(socket: RawSocket): Promise<void> {
  await socket.send(encodeHello('raw'))
  const ask = decodeAsk(await receiveAsk(socket))
  if (ask === undefined) return
  const buffer = Buffer.alloc(RECEIVE_SIZE)
  const { test, isPolling } = ask
  if (test === 'ping-pong') await (isPolling ? pollEcho(socket, buffer) : echo(socket, buffer))
  else await (isPolling ? pollSink(socket, buffer) : sink(socket, buffer))
}

/** Receives as much as arrives in time. */
async function receiveAsk(socket: RawSocket): Promise<Buffer> {
  const timer = setTimeout(() => socket.close(), ASK_TIMEOUT_MS)
  const ask = Buffer.alloc(PERF_MESSAGE_SIZE)
  let length = 0
  try {
    while (length < ask.length) {
      const received = await socket.recv(ask.subarray(length))
      if (received === 0) break
      length += received
    }
  } finally {
    // `recv` rejects if the client resets the connection, as clients of the test `connect` do.
    clearTimeout(timer)
  }
  return ask.subarray(0, length)
}

async function echo(socket: RawSocket, buffer: Buffer): Promise<void> {
  for (;;) {
    const length = await socket.recv(buffer)
    if (length === 0) return
    await socket.send(buffer.subarray(0, length))
  }
}

async function sink(socket: RawSocket, buffer: Buffer): Promise<void> {
  const watch = new StopWatch()
  for (;;) {
    const length = await socket.recv(buffer)
    if (length === 0) break
    watch.count(length)
  }
  await socket.send(encodeTotal(watch.total()))
}

async function pollEcho(socket: RawSocket, buffer: Buffer): Promise<void> {
  let from = 0
  let to = 0
  const look = (): boolean => {
    if (from < to)
      from += socket.trySend(from === 0 && to === buffer.length ? buffer : buffer.subarray(from, to))
    if (from < to) return true
    const length = socket.tryRecv(buffer)
    if (length === 0) return false
    from = 0
    to = length ?? 0
    if (to > 0) from = socket.trySend(to === buffer.length ? buffer : buffer.subarray(0, to))
    return true
  }
  await pollWhile(look)
}

async function pollSink(socket: RawSocket, buffer: Buffer): Promise<void> {
  const watch = new StopWatch()
  await pollWhile(() => {
    const length = socket.tryRecv(buffer)
    if (length !== undefined && length > 0) watch.count(length)
    return length !== 0
  })
  await socket.send(encodeTotal(watch.total()))
}

async function pollWhile(look: () => boolean): Promise<void> {
  for (;;) {
    const untilMs = performance.now() + POLL_MS
    do {
      for (let i = 0; i < LOOKS; i++) if (!look()) return
    } while (performance.now() < untilMs)
    await nextTurn()
  }
}
