/** One test of `fastsockets perf`: warm-up, measurement, report. */
import type { Wire } from '../../handle/transport.ts'
import type { HostPort } from '../host-port.ts'
import { PerfError } from './errors.ts'
import { dialNet } from './net-perf-client.ts'
import { type Dial, type PerfClient, STALL_MS } from './perf-client.ts'
import type { PerfTransport } from './perf-layout.ts'
import { latenciesUs, type PerfReport, type PerfTest } from './perf-report.ts'
import { dialRaw } from './raw-perf-client.ts'
import { type Length, Span } from './span.ts'
import { WireCounts } from './wire-counts.ts'

export interface PerfOptions {
  readonly transport: PerfTransport
  readonly poll: boolean
  readonly size: number
  /** How long to measure, unless `count` is given. */
  readonly seconds: number
  /** Round trips, messages or connections to measure, whatever time they take. */
  readonly count?: number
  /** Length of the warm-up, in which V8 compiles both programs. */
  readonly warmUpSeconds: number
}

const STALL_LOOK_MS = 1000

const DIALS: Readonly<Record<PerfTransport, Dial>> = { raw: dialRaw, net: dialNet }

type Measured = Pick<PerfReport, 'seconds' | 'count' | 'perSecond' | 'bytesPerSecond' | 'latencyUs' | 'wires'>
/** The wire of a connection; of many connections, the most common one. */
type Wired = Pick<PerfClient, 'server'> & {
  readonly transport: Pick<Wire, 'transport'> & { readonly reason?: Wire['reason'] | undefined }
}

export async function runPerf(test: PerfTest, target: HostPort, options: PerfOptions): Promise<PerfReport> {
  const run = { 'ping-pong': pingPong, throughput, connect: connectOften }[test]
  const { transport: client, poll, size, warmUpSeconds } = options
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
    warmUpSeconds,
    ...measured,
  }
}

/** The length of a test that begins now: at least one operation, however slow the machine is. */
function lengthFrom(startMs: number, { seconds, count }: PerfOptions): Length {
  return count === undefined
    ? { untilMs: startMs + seconds * 1000, countMin: 1 }
    : { untilMs: startMs, countMin: count }
}

/** The span of a test that begins now, with its warm-up. */
function openSpan(options: PerfOptions): Span {
  const fromMs = performance.now() + options.warmUpSeconds * 1000
  return new Span(fromMs, lengthFrom(fromMs, options))
}

function measuredIn({ count, seconds, histogram }: Span): Measured {
  return { seconds, count, perSecond: count / seconds, latencyUs: latenciesUs(histogram) }
}

async function pingPong(target: HostPort, options: PerfOptions, dial: Dial): Promise<[Wired, Measured]> {
  const { poll, size } = options
  const client = await dialPoller(target, options, dial)
  const span = openSpan(options)
  await finish(client, target, async () => {
    await client.ask({ test: 'ping-pong', isPolling: poll })
    await client.pingPong(Buffer.alloc(size, 1), span, poll)
  })
  return [client, measuredIn(span)]
}

async function throughput(target: HostPort, options: PerfOptions, dial: Dial): Promise<[Wired, Measured]> {
  const { poll, size, warmUpSeconds } = options
  const message = Buffer.alloc(size, 2)
  // The warm-up has a connection of its own, so that the server's clock begins with what is measured.
  const stream = async (lengthOf: (startMs: number) => Length) => {
    const client = await dialPoller(target, options, dial)
    return await finish(client, target, async () => {
      await client.ask({ test: 'throughput', isPolling: poll })
      const total = await client.stream(message, lengthOf(performance.now()), poll)
      return { wired: { server: client.server, transport: client.transport }, total }
    })
  }
  if (warmUpSeconds > 0) await stream(startMs => ({ untilMs: startMs + warmUpSeconds * 1000, countMin: 1 }))
  const { wired, total } = await stream(startMs => lengthFrom(startMs, options))
  const { bytes, seconds } = total
  const count = bytes / size
  return [wired, { seconds, count, perSecond: count / seconds, bytesPerSecond: bytes / seconds }]
}

async function connectOften(target: HostPort, options: PerfOptions, dial: Dial): Promise<[Wired, Measured]> {
  const span = openSpan(options)
  const counts = new WireCounts()
  for (;;) {
    const startMs = performance.now()
    const client = await dial(target)
    const before = span.count
    const goesOn = span.record(startMs)
    if (span.count > before) counts.add(client.transport)
    client.close()
    if (goesOn) continue
    const wires = counts.all
    const [most] = wires
    const transport = most === undefined ? client.transport : { ...most, transport: most.wire }
    return [
      { server: client.server, transport },
      { ...measuredIn(span), wires },
    ]
  }
}

/** For a test in which both sides may have to poll, which a server of `node:net` cannot. */
async function dialPoller(target: HostPort, { poll }: PerfOptions, dial: Dial): Promise<PerfClient> {
  const client = await dial(target)
  if (!poll || client.server === 'raw') return client
  client.close()
  throw new PerfError('ERR_PERF_NO_POLL', target)
}

/** Runs `use`, then closes the connection in any case. */
async function finish<T>(client: PerfClient, target: HostPort, use: () => Promise<T>): Promise<T> {
  try {
    return await unlessStalled(client, use())
  } catch (error) {
    throw new PerfError('ERR_PERF_LOST', target, error)
  } finally {
    client.close()
  }
}

/** A polling client lets the event loop run while no byte moves. */
async function unlessStalled<T>(client: PerfClient, used: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const stall = new Promise<never>((_resolve, reject) => {
    let seen = -1
    let sinceMs = 0
    timer = setInterval(() => {
      const { bytesIn, bytesOut } = client.transport
      const nowMs = performance.now()
      if (bytesIn + bytesOut !== seen) sinceMs = nowMs
      else if (nowMs - sinceMs > STALL_MS)
        reject(new Error(`the server did nothing for ${STALL_MS / 1000} s`))
      seen = bytesIn + bytesOut
    }, STALL_LOOK_MS)
  })
  try {
    return await Promise.race([used, stall])
  } finally {
    clearInterval(timer)
  }
}
