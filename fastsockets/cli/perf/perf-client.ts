/** The interface of both clients of `fastsockets perf`: one connection each, for one test. */
import type { Transport } from '../../handle/transport.ts'
import type { HostPort } from '../host-port.ts'
import type { Ask, PerfTransport, Total } from './perf-layout.ts'
import type { Length, Span } from './span.ts'

/** Wait for the HELLO of a server that has accepted the connection, and for a TOTAL. */
export const ANSWER_TIMEOUT_MS = 10_000

/** How long no byte may move before the client gives up. */
export const STALL_MS = 10_000

export interface PerfClient {
  /** The server's kind of sockets. */
  readonly server: PerfTransport
  readonly transport: Transport
  ask(ask: Ask): Promise<void>
  /** Sends `message` and waits for as many bytes, repeatedly. */
  pingPong(message: Buffer, span: Span, isPolling: boolean): Promise<void>
  /** Sends `message` repeatedly, then ends the stream; resolves with the server's TOTAL. */
  stream(message: Buffer, length: Length, isPolling: boolean): Promise<Total>
  close(): void
}

/** Connects, and waits for the server's HELLO. */
export type Dial = (target: HostPort) => Promise<PerfClient>
