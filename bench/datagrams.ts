/**
 * `npm run bench:datagrams`: `node:dgram` plain and relinked, and message sockets, against their targets. Medians of five rounds, or of
 * as many as the first argument says; the second one is the milliseconds of each measurement.
 */
import Table from 'cli-table3'
import { median } from 'simple-statistics'
import { exitOnInterrupt } from '../fastsockets/cli/interrupts.ts'
import { activeMessageUs, datagramUs, messageRate, messageUs, receivedRate } from './datagram-pairs.ts'
import { describeMachine, warnUnlessQuiet } from './machine.ts'

const [rounds = 5, ms = 1000] = process.argv.slice(2).map(Number)
const GIGA = 1e9

const MEASURED = {
  plainUs: () => datagramUs(['plain', 'plain'], 64, ms),
  relinkedUs: () => datagramUs(['relinked', 'relinked'], 64, ms),
  clientUs: () => datagramUs(['plain', 'relinked'], 64, ms),
  serverUs: () => datagramUs(['relinked', 'plain'], 64, ms),
  plainRate: () => receivedRate('plain', ms),
  relinkedRate: () => receivedRate('relinked', ms),
  activeUs: () => activeMessageUs(4, ms),
  messageUs: () => messageUs(4, ms),
  rate64K: async () => (await messageRate(64 * 1024, ms)) / GIGA,
  rate1M: async () => (await messageRate(1024 * 1024, ms)) / GIGA,
}
type Name = keyof typeof MEASURED

exitOnInterrupt()
warnUnlessQuiet(await describeMachine())
const figures = new Map<Name, number[]>()
for (let round = 0; round < rounds; round++) {
  process.stderr.write(`round ${round + 1} of ${rounds}\n`)
  for (const name of Object.keys(MEASURED) as Name[])
    figures.set(name, [...(figures.get(name) ?? []), await MEASURED[name]()])
}
const of = (name: Name): number => median(figures.get(name) ?? [])
const echo = of('plainUs') / of('relinkedUs')
const received = of('relinkedRate') / of('plainRate')
const more = of('messageUs') / of('activeUs')
const table = new Table({ head: ['measurement', 'plain', 'relinked', 'ratio', 'promise', ''] })
table.push(
  [
    'node:dgram, 64 B round trip, p50',
    `${of('plainUs').toFixed(1)} us`,
    `${of('relinkedUs').toFixed(1)} us`,
    echo.toFixed(1),
    'at least 8',
    verdict(echo >= 8),
  ],
  alone('client', of('clientUs')),
  alone('server', of('serverUs')),
  [
    'node:dgram, 1 KiB received a second',
    of('plainRate').toFixed(0),
    of('relinkedRate').toFixed(0),
    received.toFixed(1),
    'at least 5',
    verdict(received >= 5),
  ],
  ['raw active messages, 4 B round trip, p50', '', `${of('activeUs').toFixed(2)} us`, '', '', ''],
  [
    'message sockets, 4 B round trip, p50',
    '',
    `${of('messageUs').toFixed(2)} us`,
    `${more.toFixed(2)} of active messages`,
    'at most 1.3',
    verdict(more <= 1.3),
  ],
  [
    'message sockets, 64 KiB',
    '',
    `${of('rate64K').toFixed(1)} GB/s`,
    '',
    'at least 5 GB/s',
    verdict(of('rate64K') >= 5),
  ],
  [
    'message sockets, 1 MiB by rendezvous',
    '',
    `${of('rate1M').toFixed(1)} GB/s`,
    '',
    'at least 8 GB/s',
    verdict(of('rate1M') >= 8),
  ],
)
process.stdout.write(`${table.toString()}\n`)

/** The round trip if only one side is relinked. */
function alone(side: string, us: number): string[] {
  const ratio = us / of('plainUs')
  const shown = [`${of('plainUs').toFixed(1)} us`, `${us.toFixed(1)} us`, ratio.toFixed(3)]
  return [`the same, only the ${side} relinked`, ...shown, 'at most 1.03', verdict(ratio <= 1.03)]
}

function verdict(holds: boolean): string {
  return holds ? 'holds' : 'MISSED'
}
