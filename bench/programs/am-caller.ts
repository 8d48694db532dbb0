/**
 * The measuring side of the active-message measurements. Prints one result and ends.
 *
 *   argv: round-trip | calls | short | medium | long | get  NAME  count  DRIVER
 */
import { createHistogram } from 'node:perf_hooks'
import { openEndpoint } from '../../am/index.ts'
import { ECHO, ECHOED, MEDIUM_SIZE, SEGMENT_SIZE, SINK, STOP } from './am-protocol.ts'

const [what = '', name = '', countText, driver = 'shm'] = process.argv.slice(2)
const count = Number(countText)
const WARM_UP_SHARE = 0.2
/** Round trips between two readings of the clock. */
const BATCH = 16

const progress = what === 'calls' ? 'event-loop' : 'manual'
const endpoint = await openEndpoint({ progress, drivers: [driver], segment: SEGMENT_SIZE })
let answered = 0
endpoint.setHandler(ECHOED, () => {
  answered++
})
await endpoint.map(0, name)
const result = await measure()
process.stdout.write(`${JSON.stringify(result)}\n`)
answered = 0
// A long message may still be on its way in parts: it has no room before that.
while (endpoint.request(0, STOP) !== 0) endpoint.poll()
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
    case 'get':
      return { bytesPerSecond: SEGMENT_SIZE * rateOf(getOnce) }
    default:
      throw new Error(`there is no measurement ${what}`)
  }
}

/**
 * Reading the clock costs a tenth of a round trip. So the median is that of batches, with one reading for each; and the
 * 99th percentile, which a batch would hide, that of single round trips, clock included.
 */
function measureRoundTrips(): Record<string, number> {
  let rounds = 0
  const sample = (sampleCount: number, batch: number): Float64Array => {
    const times = new Float64Array(sampleCount)
    for (let i = 0; i < sampleCount; i++) {
      const startMs = performance.now()
      for (let j = 0; j < batch; j++) {
        endpoint.request(0, ECHO, rounds)
        while (answered <= rounds) endpoint.poll()
        rounds++
      }
      times[i] = ((performance.now() - startMs) * 1000) / batch
    }
    return times.sort()
  }
  sample(count * WARM_UP_SHARE, 1)
  const batches = sample(count / BATCH, BATCH)
  const singles = sample(count, 1)
  return {
    p50Us: batches[batches.length >> 1] ?? Number.NaN,
    p99Us: singles[Math.floor(count * 0.99)] ?? Number.NaN,
  }
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

/** Each get waits for the one before. */
function getOnce(): number {
  const before = answered
  const status = endpoint.get(0, ECHOED, 0, SEGMENT_SIZE, 0)
  while (status === 0 && answered === before) endpoint.poll()
  return status
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
