/** One test of `fastsockets perf`: warm-up, measurement, report. */
import { createHistogram } from 'node:perf_hooks'
import type { HostPort } from '../host-port.ts'
import { PerfError } from './errors.ts'
import { dialNet } from './net-perf-client.ts'
import type { Dial, PerfClient } from './perf-client.ts'
import type { PerfTransport } from './perf-layout.ts'
import { type PerfReport, type PerfTest, percentilesUs } from './perf-report.ts'
import { dialRaw } from './raw-perf-client.ts'

export interface PerfOptions {
  readonly transport: PerfTransport
  readonly poll: boolean
  readonly size: number
  readonly seconds: number
}

/** Before what is measured, as a share of it: the compilers of both programs come to rest. */
const WARM_UP = 0.25

const DIALS: Readonly<Record<PerfTransport, Dial>> = { raw: dialRaw, net: dialNet }

type Measured = Pick<PerfReport, 'seconds' | 'count' | 'perSecond' | 'bytesPerSecond' | 'latencyUs'>
/** What one of the connections says of itself; all of a run use the same wire. */
type Wired = Pick<PerfClient, 'server' | 'transport'>

export async function runPerf(test: PerfTest, target: HostPort, options: PerfOptions): Promise<PerfReport> {
  const run = { 'ping-pong': pingPong, throughput, connect: connectOften }[test]
  const { transport: client, poll, size } = options
  const [wired, measured] = await run(target, options, DIALS[client])
  const { transport: wire, reason } = wired.transport
  return {
    version: 1,
    test,
    target: { host: target.host, port: target.port },
    transport: { client, server: wired.server, poll },
    wire,
    ...(reason && { reason }),
    ...(test === 'connect' ? {} : { size }),
    ...measured,
  }
}

async function pingPong(target: HostPort, options: PerfOptions, dial: Dial): Promise<[Wired, Measured]> {
  const { poll, size, seconds } = options
  const client = await dial(target)
  const histogram = createHistogram()
  const fromMs = performance.now() + seconds * WARM_UP * 1000
  const span = { fromMs, untilMs: fromMs + seconds * 1000, histogram }
  const count = await finish(client, target, async () => {
    await client.ask({ test: 'ping-pong', isPolling: poll })
    return await client.pingPong(Buffer.alloc(size, 1), span, poll)
  })
  return [client, { seconds, count, perSecond: count / seconds, latencyUs: percentilesUs(histogram) }]
}

async function throughput(target: HostPort, options: PerfOptions, dial: Dial): Promise<[Wired, Measured]> {
  const { poll, size, seconds } = options
  const message = Buffer.alloc(size, 2)
  // The warm-up has a connection of its own, so that the server's clock begins with what is measured.
  const stream = async (lengthMs: number) => {
    const client = await dial(target)
    return await finish(client, target, async () => {
      await client.ask({ test: 'throughput', isPolling: poll })
      const total = await client.stream(message, performance.now() + lengthMs, poll)
      return { wired: { server: client.server, transport: client.transport }, total }
    })
  }
  await stream(seconds * WARM_UP * 1000)
  const { wired, total } = await stream(seconds * 1000)
  const count = total.bytes / size
  const perSecond = count / total.seconds
  return [wired, { seconds: total.seconds, count, perSecond, bytesPerSecond: total.bytes / total.seconds }]
}

async function connectOften(
  target: HostPort,
  { seconds }: PerfOptions,
  dial: Dial,
): Promise<[Wired, Measured]> {
  const histogram = createHistogram()
  const fromMs = performance.now() + seconds * WARM_UP * 1000
  const untilMs = fromMs + seconds * 1000
  let count = 0
  for (;;) {
    const startMs = performance.now()
    const client = await dial(target)
    const nowMs = performance.now()
    const wired = { server: client.server, transport: client.transport }
    client.close()
    if (startMs >= fromMs) {
      histogram.record(Math.max(1, Math.round((nowMs - startMs) * 1e6)))
      count++
    }
    // At least one, however slow this machine is.
    if (nowMs < untilMs || count === 0) continue
    return [wired, { seconds, count, perSecond: count / seconds, latencyUs: percentilesUs(histogram) }]
  }
}

/** Runs `use`, then closes the connection, whatever came of it. */
async function finish<T>(client: PerfClient, target: HostPort, use: () => Promise<T>): Promise<T> {
  try {
    return await use()
  } catch (error) {
    throw new PerfError('ERR_PERF_LOST', target, error)
  } finally {
    client.close()
  }
}
