/** The client of `fastsockets perf` over raw sockets, by promises or in a loop of polls. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { connect, type RawSocket } from '../../raw/index.ts'
import { withDeadline } from '../deadline.ts'
import type { HostPort } from '../host-port.ts'
import { PerfError, perfConnectError } from './errors.ts'
import { ANSWER_TIMEOUT_MS, type PerfClient } from './perf-client.ts'
import {
  type Ask,
  decodeHello,
  decodeTotal,
  encodeAsk,
  PERF_MESSAGE_SIZE,
  type PerfTransport,
  type Total,
} from './perf-layout.ts'
import { PolledMessage } from './polled-message.ts'
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
    const polled = new PolledMessage(this.#socket, message, back)
    for (;;) {
      const startMs = performance.now()
      if (isPolling) {
        polled.begin()
        while (!polled.poll()) await nextTurn()
      } else await roundTrip(this.#socket, message, back)
      if (!span.record(startMs)) return
    }
  }

  async stream(message: Buffer, { untilMs, countMin }: Length, isPolling: boolean): Promise<Total> {
    const polled = new PolledMessage(this.#socket, message)
    for (let count = 0; count < countMin || performance.now() < untilMs; count++) {
      if (isPolling) {
        polled.begin()
        while (!polled.poll()) await nextTurn()
      } else await this.#socket.send(message)
    }
    this.#socket.shutdown()
    const total = receiveMessage(this.#socket)
    return decodeTotal(await withDeadline(total, ANSWER_TIMEOUT_MS, 'no total came'))
  }

  /** Closes with a reset, as `NetPerfClient` does. */
  close(): void {
    this.#socket.reset()
  }
}

/**
 * A message larger than the windows returns while it is still being sent: sending and receiving must not wait for each
 * other.
 */
async function roundTrip(socket: RawSocket, message: Buffer, back: Buffer): Promise<void> {
  const sending = socket.send(message)
  for (let received = 0; received < back.length; ) {
    const length = await socket.recv(back)
    if (length === 0) throw new Error('the server hung up')
    received += length
  }
  await sending
}
