/** The client of `fastsockets perf` over raw sockets, by promises or in a loop of polls. */
import { connect, type RawSocket } from '../../raw/index.ts'
import { withDeadline } from '../deadline.ts'
import type { HostPort } from '../host-port.ts'
import { PerfError, perfConnectError } from './errors.ts'
import { ANSWER_TIMEOUT_MS, type PerfClient, STALL_MS, stalled } from './perf-client.ts'
import {
  type Ask,
  decodeHello,
  decodeTotal,
  encodeAsk,
  PERF_MESSAGE_SIZE,
  type PerfTransport,
  type Total,
} from './perf-layout.ts'
import type { Length, Span } from './span.ts'

export async function dialRaw(target: HostPort): Promise<PerfClient> {
  let socket: RawSocket
  try {
    socket = await connect(target)
  } catch (error) {
    throw perfConnectError(target, error)
  }
  try {
    const hello = await withDeadline(receiveMessage(socket), ANSWER_TIMEOUT_MS, 'it said nothing')
    const server = decodeHello(hello)
    if (server === undefined) throw new Error('it said something else')
    return new RawPerfClient(socket, server)
  } catch (error) {
    socket.close()
    throw new PerfError('ERR_PERF_STRANGER', target, error)
  }
}

async function receiveMessage(socket: RawSocket): Promise<Buffer> {
  const message = Buffer.alloc(PERF_MESSAGE_SIZE)
  for (let at = 0; at < message.length; ) {
    const length = await socket.recv(message.subarray(at))
    if (length === 0) throw new Error('it hung up')
    at += length
  }
  return message
}

class RawPerfClient implements PerfClient {
  readonly server: PerfTransport
  readonly #socket: RawSocket

  constructor(socket: RawSocket, server: PerfTransport) {
    this.#socket = socket
    this.server = server
  }

  get transport() {
    return this.#socket.transport
  }

  async ask(ask: Ask): Promise<void> {
    await this.#socket.send(encodeAsk(ask))
  }

  async pingPong(message: Buffer, span: Span, isPolling: boolean): Promise<void> {
    const back = Buffer.alloc(message.length)
    for (;;) {
      const startMs = performance.now()
      if (isPolling) pollRoundTrip(this.#socket, message, back, startMs)
      else await roundTrip(this.#socket, message, back)
      if (!span.record(startMs)) return
    }
  }

  async stream(message: Buffer, { untilMs, countMin }: Length, isPolling: boolean): Promise<Total> {
    for (let count = 0; count < countMin || performance.now() < untilMs; count++) {
      if (isPolling) pollSend(this.#socket, message)
      else await this.#socket.send(message)
    }
    this.#socket.shutdown()
    const total = receiveMessage(this.#socket)
    return decodeTotal(await withDeadline(total, ANSWER_TIMEOUT_MS, 'no total came'))
  }

  /** With a reset, as the other client. */
  close(): void {
    this.#socket.reset()
  }
}

/** What is larger than the windows comes back while it is still being sent: neither may wait for the other. */
async function roundTrip(socket: RawSocket, message: Buffer, back: Buffer): Promise<void> {
  const sending = socket.send(message)
  for (let received = 0; received < back.length; ) {
    const length = await socket.recv(back)
    if (length === 0) throw new Error('the server hung up')
    received += length
  }
  await sending
}

const LOOKS = 1024

function pollRoundTrip(socket: RawSocket, message: Buffer, back: Buffer, startMs: number): void {
  const size = message.length
  let sent = socket.trySend(message)
  let received = 0
  let seen = 0
  let sinceMs = startMs
  for (let looks = 1; received < size; looks++) {
    if (sent < size) sent += socket.trySend(sent === 0 ? message : message.subarray(sent))
    const length = socket.tryRecv(back)
    if (length === 0) throw new Error('the server hung up')
    received += length ?? 0
    if (looks % LOOKS !== 0) continue
    sinceMs = standingSince(sinceMs, sent + received !== seen)
    seen = sent + received
  }
}

function pollSend(socket: RawSocket, message: Buffer): void {
  let seen = 0
  let sinceMs = Number.POSITIVE_INFINITY
  for (let sent = 0, looks = 1; sent < message.length; looks++) {
    sent += socket.trySend(sent === 0 ? message : message.subarray(sent))
    if (looks % LOOKS !== 0) continue
    sinceMs = standingSince(sinceMs, looks === LOOKS || sent !== seen)
    seen = sent
  }
}

/** Since when no byte has moved; throws if that is too long. */
function standingSince(sinceMs: number, hasMoved: boolean): number {
  const nowMs = performance.now()
  if (hasMoved) return nowMs
  if (nowMs - sinceMs > STALL_MS) throw stalled()
  return sinceMs
}
