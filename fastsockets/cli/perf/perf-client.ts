/** What both clients of `fastsockets perf` can do: one connection each, made for one test. */
import type { RecordableHistogram } from 'node:perf_hooks'
import type { Transport } from '../../transport.ts'
import type { HostPort } from '../host-port.ts'
import type { Ask, PerfTransport, Total } from './perf-layout.ts'

/** For the HELLO of a server that has accepted the connection, and for a TOTAL. */
export const ANSWER_TIMEOUT_MS = 10_000

/** Round trips, or connections, until then: they count into `histogram`, in nanoseconds, once `from` has come. */
export interface Span {
  readonly fromMs: number
  readonly untilMs: number
  readonly histogram: RecordableHistogram
}

export interface PerfClient {
  /** What the server is made of. */
  readonly server: PerfTransport
  readonly transport: Transport
  ask(ask: Ask): Promise<void>
  /** Sends `message` and waits for as many bytes, again and again. Resolves with the number of those that count. */
  pingPong(message: Buffer, span: Span, isPolling: boolean): Promise<number>
  /** Sends `message` again and again, then ends the stream; resolves with what the server has received. */
  stream(message: Buffer, untilMs: number, isPolling: boolean): Promise<Total>
  close(): void
}

/** Connects, and waits for the server's HELLO. */
export type Dial = (target: HostPort) => Promise<PerfClient>

export function recordSince(span: Span, startMs: number): number {
  const nowMs = performance.now()
  if (startMs < span.fromMs) return 0
  // A histogram has no zero.
  span.histogram.record(Math.max(1, Math.round((nowMs - startMs) * 1e6)))
  return 1
}
