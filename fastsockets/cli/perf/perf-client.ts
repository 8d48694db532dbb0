/** What both clients of `fastsockets perf` can do: one connection each, made for one test. */
import type { Transport } from '../../handle/transport.ts'
import type { HostPort } from '../host-port.ts'
import type { Ask, PerfTransport, Total } from './perf-layout.ts'
import type { Length, Span } from './span.ts'

/** For the HELLO of a server that has accepted the connection, and for a TOTAL. */
export const ANSWER_TIMEOUT_MS = 10_000

/** A server that has stopped must not hold us for ever: so long may no byte move. */
export const STALL_MS = 10_000

export interface PerfClient {
  /** What the server is made of. */
  readonly server: PerfTransport
  readonly transport: Transport
  ask(ask: Ask): Promise<void>
  /** Sends `message` and waits for as many bytes, again and again. */
  pingPong(message: Buffer, span: Span, isPolling: boolean): Promise<void>
  /** Sends `message` again and again, then ends the stream; resolves with what the server has received. */
  stream(message: Buffer, length: Length, isPolling: boolean): Promise<Total>
  close(): void
}

/** Connects, and waits for the server's HELLO. */
export type Dial = (target: HostPort) => Promise<PerfClient>
