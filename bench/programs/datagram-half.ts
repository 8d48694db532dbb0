/**
 * One side of `npm run bench:datagrams`, forked. argv: the role, and for those that send the port, the size and the milliseconds.
 *
 *   echo | ask         round trips of `node:dgram`; ask says { p50Us }
 *   sink | stream      bursts one way; the sink answers each message of its parent with { count, ms }
 *   messages | poll    round trips of message sockets, both polling; poll says { p50Us }
 *   taker | push       messages one way, with promises; push says { bytesPerSecond }
 */
import dgram from 'node:dgram'
import { once } from 'node:events'
import { connect, listen, type MessageSocket } from '../../fastsockets/raw/index.ts'

const [role, ...rest] = process.argv.slice(2)
const [port = 0, size = 64, ms = 1000] = rest.map(Number)
const HOST = '127.0.0.1'
/** Datagrams in one turn of the event loop. */
const BURST = 50
const SIZE_MAX = 1 << 20
/** Messages that wait to be sent. */
const SENDS_MAX = 4
/** First byte of a message: whether it is answered. */
const ANSWERED = 1

process.on('disconnect', () => process.exit())

function say(message: object): void {
  process.send?.(message)
}

function p50(times: number[]): number {
  times.sort((a, b) => a - b)
  return 1000 * (times[times.length >> 1] as number)
}

async function serveUdp(onMessage: (bytes: Buffer, from: dgram.RemoteInfo, socket: dgram.Socket) => void) {
  const socket = dgram.createSocket('udp4')
  socket.on('message', (bytes, from) => onMessage(bytes, from, socket))
  socket.bind(0, HOST)
  await once(socket, 'listening')
  say({ port: socket.address().port })
}

async function ask(): Promise<void> {
  const socket = dgram.createSocket('udp4')
  const message = Buffer.alloc(size, 1)
  const times: number[] = []
  const beginMs = performance.now()
  let sentMs = beginMs
  socket.on('message', () => {
    const nowMs = performance.now()
    // The first half lets the compiler of Node do its work.
    if (nowMs - beginMs > ms / 2) times.push(nowMs - sentMs)
    if (nowMs - beginMs > ms) return say({ p50Us: p50(times) })
    sentMs = performance.now()
    socket.send(message, port, HOST)
  })
  socket.send(message, port, HOST)
}

function stream(): void {
  const socket = dgram.createSocket('udp4')
  const message = Buffer.alloc(size, 1)
  const burst = (): void => {
    for (let i = 0; i < BURST; i++) socket.send(message, port, HOST)
    setImmediate(burst)
  }
  burst()
}

function receive(socket: MessageSocket, into: Uint8Array): number {
  for (;;) {
    const length = socket.tryRecv(into)
    if (length !== undefined) return length
  }
}

function send(socket: MessageSocket, bytes: Uint8Array): void {
  while (!socket.trySend(bytes));
}

async function serveMessages(): Promise<void> {
  const server = await listen({ type: 'datagram', host: HOST })
  say({ port: server.address.port })
  const socket = (await server.accept()) as MessageSocket
  const into = new Uint8Array(SIZE_MAX)
  const answer = into.subarray(0, 4)
  while (receive(socket, into) >= 0) if (into[0] === ANSWERED) send(socket, answer)
}

async function takeMessages(): Promise<void> {
  const server = await listen({ type: 'datagram', host: HOST })
  say({ port: server.address.port })
  const socket = (await server.accept()) as MessageSocket
  const into = new Uint8Array(SIZE_MAX)
  while ((await socket.recv(into)) >= 0) if (into[0] === ANSWERED) await socket.send(into.subarray(0, 4))
}

async function poll(): Promise<void> {
  const socket = await connect({ type: 'datagram', host: HOST, port })
  const bytes = new Uint8Array(size).fill(ANSWERED)
  const times: number[] = []
  const beginMs = performance.now()
  for (let nowMs = beginMs; nowMs - beginMs < ms; ) {
    send(socket, bytes)
    receive(socket, bytes)
    const endMs = performance.now()
    if (endMs - beginMs > ms / 2) times.push(endMs - nowMs)
    nowMs = endMs
  }
  say({ p50Us: p50(times) })
}

async function push(): Promise<void> {
  const socket = await connect({ type: 'datagram', host: HOST, port })
  const bytes = new Uint8Array(size)
  const answer = new Uint8Array(4)
  let count = 0
  let beginMs = performance.now()
  const middleMs = beginMs + ms / 2
  const sends: Promise<number>[] = []
  for (let isWarm = false; performance.now() - beginMs < ms / 2 || !isWarm; count++) {
    sends.push(socket.send(bytes))
    if (sends.length === SENDS_MAX) await sends.shift()
    if (isWarm || performance.now() < middleMs) continue
    isWarm = true
    count = 0
    beginMs = performance.now()
  }
  await Promise.all(sends)
  bytes[0] = ANSWERED
  await socket.send(bytes)
  await socket.recv(answer)
  say({ bytesPerSecond: (1000 * size * (count + 1)) / (performance.now() - beginMs) })
}

if (role === 'echo') await serveUdp((bytes, from, socket) => socket.send(bytes, from.port, from.address))
else if (role === 'ask') await ask()
else if (role === 'stream') stream()
else if (role === 'messages') await serveMessages()
else if (role === 'taker') await takeMessages()
else if (role === 'poll') await poll()
else if (role === 'push') await push()
else {
  let count = 0
  await serveUdp(() => count++)
  process.on('message', () => say({ count, ms: performance.now() }))
}
