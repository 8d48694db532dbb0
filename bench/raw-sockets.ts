/**
 * `npm run bench:raw`: raw sockets against their targets, over shared memory, polling and by the event loop. Medians
 * of five rounds.
 */
import Table from 'cli-table3'
import { median } from 'simple-statistics'
import { exitOnInterrupt } from '../fastsockets/cli/interrupts.ts'
import type { Contestant } from './contestants/contestant.ts'
import { contestant as waiting } from './contestants/raw.ts'
import { contestant as polling } from './contestants/raw-polling.ts'
import { decodeLatencies, withPair } from './half.ts'
import { LatencyHistogram } from './latency-histogram.ts'
import { describeMachine, warnUnlessQuiet } from './machine.ts'
import { LARGE, SMALL } from './sizes.ts'

const ROUNDS = 5
const TIMES = { warmUpMs: 200, ms: 1000 }
const GIGA = 1e9

class Figures {
  readonly p50Us: number[] = []
  readonly bytesPerSecond: number[] = []
  readonly latencies = new LatencyHistogram()

  async measure(contestant: Contestant): Promise<void> {
    await withPair(contestant, async ({ client }) => {
      const latencies = decodeLatencies(await client.ask({ ask: 'pingPong', size: SMALL, ...TIMES }))
      this.latencies.merge(latencies)
      this.p50Us.push(latencies.percentiles().p50)
      const { bytes, ms } = await client.ask({ ask: 'stream', size: LARGE, ...TIMES })
      this.bytesPerSecond.push((bytes * 1000) / ms)
    })
  }
}

exitOnInterrupt()
warnUnlessQuiet(await describeMachine())
const polled = new Figures()
const waited = new Figures()
for (let round = 0; round < ROUNDS; round++) {
  process.stderr.write(`round ${round + 1} of ${ROUNDS}\n`)
  await polled.measure(polling)
  await waited.measure(waiting)
}
const p50 = median(polled.p50Us)
const rate = median(polled.bytesPerSecond) / GIGA
const table = new Table({ head: ['measurement', 'result', 'promise', ''] })
table.push(
  ['64 B round trip, polling, p50', `${p50.toFixed(2)} us`, 'at most 1 us', verdict(p50 <= 1)],
  ['64 B round trip, polling, p99', `${polled.latencies.percentiles().p99.toFixed(2)} us`, '', ''],
  ['64 KiB one way, polling', `${rate.toFixed(1)} GB/s`, 'at least 5 GB/s', verdict(rate >= 5)],
  ['64 B round trip, promises, p50', `${median(waited.p50Us).toFixed(2)} us`, '', ''],
  ['64 KiB one way, promises', `${(median(waited.bytesPerSecond) / GIGA).toFixed(1)} GB/s`, '', ''],
)
process.stdout.write(`${table.toString()}\n`)

function verdict(holds: boolean): string {
  return holds ? 'holds' : 'MISSED'
}
