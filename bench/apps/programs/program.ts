/**
 * Both halves of one app as a program: an unmodified package from npm at either end. It knows nothing of Fast Sockets.
 *
 *   argv: server FOLDER | client PORT MS (how long to measure, in milliseconds)
 *
 * The server prints its port and ends with its standard input; the client prints what it measured.
 */
import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'
import { type EncodedHistogram, LatencyHistogram } from '../../latency-histogram.ts'

export const HOST = '127.0.0.1'
/** The warm-up as a share of the measured time, in which V8 compiles and the windows of TCP grow. */
const WARM_UP = 0.5

/** One thing that a client has measured. */
export interface Figure {
  /** The measured part of the app, such as `unary` or `stream`. */
  readonly part: string
  readonly metric: 'roundTrip' | 'rate' | 'time'
  readonly unit: 'us' | '1/s' | 'B/s' | 's'
  readonly value: number
  readonly latencies?: EncodedHistogram
}

export interface App {
  /** `folder` is empty and in memory; the process that started this program removes it. */
  serve(folder: string): Promise<number>
  call(port: number, ms: number): Promise<readonly Figure[]>
}

export function play(app: App): void {
  const [role, place = '', ms] = process.argv.slice(2)
  if (role === 'server') void app.serve(place).then(port => print({ port }))
  else void app.call(Number(place), Number(ms)).then(print)
  process.stdin.resume().once('end', () => process.exit())
}

/** The port of a server, which listens from now on. */
export async function portOf(server: Server): Promise<number> {
  server.listen(0, HOST)
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** One after the other, for `ms` after the warm-up. */
export async function measureRoundTrips(
  part: string,
  ms: number,
  roundTrip: () => Promise<unknown>,
): Promise<Figure> {
  const latencies = new LatencyHistogram()
  const fromMs = performance.now() + ms * WARM_UP
  const untilMs = fromMs + ms
  for (;;) {
    const startMs = performance.now()
    await roundTrip()
    const nowMs = performance.now()
    if (startMs >= fromMs) latencies.recordMs(nowMs - startMs)
    // At least one, however slow this machine is.
    if (nowMs >= untilMs && latencies.count > 0) break
  }
  const value = latencies.percentile(50) / 1000
  return { part, metric: 'roundTrip', unit: 'us', value, latencies: latencies.encode() }
}

/** Counts one stream, from the first measured message to the last. */
export class Meter {
  readonly #fromMs: number
  readonly #untilMs: number
  #firstMs = 0
  #lastMs = 0
  #units = 0

  constructor(ms: number) {
    this.#fromMs = performance.now() + ms * WARM_UP
    this.#untilMs = this.#fromMs + ms
  }

  /** True when enough is counted. */
  count(units: number): boolean {
    const nowMs = performance.now()
    if (nowMs < this.#fromMs) return false
    if (this.#firstMs === 0) {
      this.#firstMs = nowMs
      return false
    }
    this.#units += units
    this.#lastMs = nowMs
    return nowMs >= this.#untilMs
  }

  get perSecond(): number {
    return (this.#units * 1000) / (this.#lastMs - this.#firstMs)
  }
}

function print(value: object): void {
  process.stdout.write(`${JSON.stringify(value)}\n`)
}
