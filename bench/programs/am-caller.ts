/**
 * The measuring side of the active-message measurements. Prints one result and ends.
 *
 *   argv: round-trip NAME count | calls NAME count | short NAME count | medium NAME count | long NAME count
 */
import { createHistogram } from 'node:perf_hooks'
import { openEndpoint } from '../../am/index.ts'
import { ECHO, ECHOED, MEDIUM_SIZE, SEGMENT_SIZE, SINK, STOP } from './am-protocol.ts'

const [what = '', name = '', countText] = process.argv.slice(2)
const count = Number(countText)
const WARM_UP_SHARE = 0.2

const progress = what === 'calls' ? 'event-loop' : 'manual'
const endpoint = await openEndpoint({ progress, drivers: ['shm'] })
let answered = 0
endpoint.setHandler(ECHOED, () => {
  answered++
})
await endpoint.map(0, name)
const result = await measure()
process.stdout.write(`${JSON.stringify(result)}\n`)
answered = 0
endpoint.request(0, STOP)
while (progress === 'manual' && answered === 0) endpoint.poll()
await endpoint.close()

async function measure(): Promise<Record<string, number>> {
  switch (what) {
    case 'round-trip':
      return measureRoundTrips()
    case 'calls':
      return await measureCalls()
    case 'short':
      return { rate: rateOf(() => endpoint.request(0, SINK, 1)) }
    case 'medium': {
      const payload = Buffer.alloc(MEDIUM_SIZE, 1)
      return { bytesPerSecond: MEDIUM_SIZE * rateOf(() => endpoint.requestMedium(0, SINK, payload)) }
    }
    case 'long': {
      const payload = Buffer.alloc(SEGMENT_SIZE, 1)
      return { bytesPerSecond: SEGMENT_SIZE * rateOf(() => endpoint.requestLong(0, SINK, payload, 0)) }
    }
    default:
      throw new Error(`there is no measurement ${what}`)
  }
}

/** The clock is read once for each round trip, and what that costs is part of the result. */
function measureRoundTrips(): Record<string, number> {
  const warmUp = count * WARM_UP_SHARE
  const times = new Float64Array(count)
  let before = performance.now()
  for (let i = 0; i < warmUp + count; i++) {
    endpoint.request(0, ECHO, i)
    while (answered <= i) endpoint.poll()
    const now = performance.now()
    if (i >= warmUp) times[i - warmUp] = now - before
    before = now
  }
  times.sort()
  const at = (share: number): number => (times[Math.floor(count * share)] ?? Number.NaN) * 1000
  return { p50Us: at(0.5), p99Us: at(0.99) }
}

async function measureCalls(): Promise<Record<string, number>> {
  const histogram = createHistogram()
  for (let i = 0; i < count; i++) {
    const sentAt = process.hrtime.bigint()
    await endpoint.call(0, ECHO)
    if (i > count * WARM_UP_SHARE) histogram.record(process.hrtime.bigint() - sentAt)
  }
  return { p50Us: histogram.percentile(50) / 1000, p99Us: histogram.percentile(99) / 1000 }
}

/** Per second, at the sender. The credits keep it from running ahead of the receiver by more than 64. */
function rateOf(send: () => number): number {
  const warmUp = count * WARM_UP_SHARE
  let startMs = 0
  for (let i = 0; i < warmUp + count; i++) {
    if (i === warmUp) startMs = performance.now()
    while (send() !== 0) endpoint.poll()
  }
  return (count / (performance.now() - startMs)) * 1000
}
