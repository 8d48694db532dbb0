/** The client of `fastsockets perf` over `node:net`, relinked, by events as ordinary programs use it. */
import { once } from 'node:events'
import net from 'node:net'
import { transportOf } from '../../handle/transport.ts'
import { relink } from '../../relink/preload.ts'
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
import type { Length, Span } from './span.ts'

export async function dialNet(target: HostPort): Promise<PerfClient> {
  relink()
  const socket = net.connect({ ...target, noDelay: true, allowHalfOpen: true })
  try {
    await once(socket, 'connect')
  } catch (error) {
    throw perfConnectError(target, error)
  }
  try {
    const hello = await withDeadline(receiveMessage(socket), ANSWER_TIMEOUT_MS, 'it said nothing')
    const server = decodeHello(hello)
    if (server === undefined) throw new Error('it said something else')
    return new NetPerfClient(socket, server)
  } catch (error) {
    socket.destroy()
    throw new PerfError('ERR_PERF_STRANGER', target, error)
  }
}

/** After its HELLO the server sends nothing until the client's ASK. */
function receiveMessage(socket: net.Socket): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let received: Buffer = Buffer.alloc(0)
    const settle = (act: () => void): void => {
      socket.off('data', handleData).off('end', handleEnd).off('error', handleError)
      act()
    }
    const handleData = (bytes: Buffer): void => {
      received = Buffer.concat([received, bytes])
      if (received.length >= PERF_MESSAGE_SIZE) settle(() => resolve(received.subarray(0, PERF_MESSAGE_SIZE)))
    }
    const handleEnd = (): void => settle(() => reject(new Error('it hung up')))
    const handleError = (error: Error): void => settle(() => reject(error))
    socket.on('data', handleData).once('end', handleEnd).once('error', handleError)
  })
}

class NetPerfClient implements PerfClient {
  readonly server: PerfTransport
  readonly #socket: net.Socket

  constructor(socket: net.Socket, server: PerfTransport) {
    this.#socket = socket
    this.server = server
  }

  get transport() {
    return transportOf(this.#socket)
  }

  async ask(ask: Ask): Promise<void> {
    this.#socket.write(encodeAsk(ask))
  }

  pingPong(message: Buffer, span: Span): Promise<void> {
    const socket = this.#socket
    return new Promise((resolve, reject) => {
      let left = 0
      let startMs = 0
      const send = (): void => {
        left = message.length
        startMs = performance.now()
        socket.write(message)
      }
      socket.on('data', bytes => {
        left -= bytes.length
        if (left > 0) return
        if (span.record(startMs)) send()
        else resolve()
      })
      socket.once('error', reject)
      socket.once('end', () => reject(new Error('the server hung up')))
      send()
    })
  }

  async stream(message: Buffer, { untilMs, countMin }: Length): Promise<Total> {
    const socket = this.#socket
    const total = receiveMessage(socket)
    // A later waiter gets this error; until then it is unhandled on purpose.
    total.catch(() => {})
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      let count = 0
      const write = (): void => {
        while (count < countMin || performance.now() < untilMs) {
          count++
          if (!socket.write(message)) return void socket.once('drain', write)
        }
        resolve()
      }
      write()
    })
    socket.end()
    return decodeTotal(await withDeadline(total, ANSWER_TIMEOUT_MS, 'no total came'))
  }

  /** Closes with a reset: a client that connects often would run out of ports in TIME_WAIT. */
  close(): void {
    this.#socket.on('error', () => {}).resetAndDestroy()
  }
}
