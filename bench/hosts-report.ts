/** Prints what between-hosts.ts measures: beside the promises, or with the mechanisms of EMP (2002) switched off. */
import Table from 'cli-table3'
import { median } from 'simple-statistics'
import { type Measured, type Network, openNetwork } from './between-hosts.ts'

const GIGA = 1e9

/** The promises: shares of the echo of node:net there, and GB/s. */
const PROMISES: Readonly<
  Record<string, { roundTrip: number; call: number; medium: number; long?: number; sockets?: number }>
> = {
  tcp: { roundTrip: 1 / 5, call: 1, medium: 1, long: 3 },
  ethernet: { roundTrip: 1 / 8, call: 0.8, medium: 0.4, sockets: 1 / 4 },
}

/** Figures 11 and 12 of the paper: each mechanism off, and credits N with 2N descriptors. Both sides have the setting. */
const ABLATIONS: readonly (readonly [mechanism: string, ablate: string])[] = [
  ['as shipped', ''],
  ['no delayed acknowledgements', 'no-delayed-acks'],
  ['no piggybacked acknowledgements', 'no-piggyback'],
  ['neither', 'no-delayed-acks,no-piggyback'],
  ['no unexpected queue', 'no-unexpected-queue'],
  ...[8, 16, 32, 64, 128].map(credits => [`${credits} credits`, `window=${credits}`] as const),
]

const ROUND_TRIPS = 100_000
const CALLS = 30_000
const MEDIUMS = 200_000
const LONGS = 1000
/** An ablation is measured with so many times fewer messages: there are ten, and some are slow. */
const ABLATED_SHARE = 8

export async function measureBetweenHosts(driver: string, mtu: number, rounds: number): Promise<void> {
  const promises = PROMISES[driver]
  if (promises === undefined) throw new Error(`there is no driver ${driver}; there are shm, tcp and ethernet`)
  const found = { tcp: [], datagram: [], p50: [], calls: [], medium: [], long: [], sockets: [] } as Record<
    string,
    number[]
  >
  const note = (name: string, value = Number.NaN): void => void found[name]?.push(value)
  await inRounds(driver, mtu, rounds, async network => {
    note('tcp', await network.echoOverTcp())
    note('p50', (await network.callActive('manual', 'round-trip', ROUND_TRIPS)).p50Us)
    note('datagram', await network.echoOverDatagrams())
    note('calls', (await network.callActive('event-loop', 'calls', CALLS)).p50Us)
    if (promises.sockets !== undefined) note('sockets', await network.echoOverSockets())
    note('medium', (await network.callActive('manual', 'medium', MEDIUMS)).bytesPerSecond)
    note('long', (await network.callActive('manual', 'long', LONGS)).bytesPerSecond)
  })
  const of = (name: string): number => median(found[name] as number[])
  const table = newTable([`${driver}, MTU ${mtu}`, 'result', 'beside', 'promise', ''])
  const share = (name: string, us: number, most: number): void => {
    const beside = `node:net ${of('tcp').toFixed(1)} us: ${(us / of('tcp')).toFixed(3)}; node:dgram ${of('datagram').toFixed(1)} us`
    const verdict = us <= most * of('tcp') ? 'holds' : 'MISSED'
    table.push([name, `${us.toFixed(2)} us`, beside, `at most ${most}`, verdict])
  }
  const rate = (name: string, bytesPerSecond: number, least: number | undefined): void => {
    const verdict = least === undefined ? '' : bytesPerSecond >= least * GIGA ? 'holds' : 'MISSED'
    const promise = least === undefined ? '' : `at least ${least} GB/s`
    table.push([name, `${(bytesPerSecond / GIGA).toFixed(2)} GB/s`, '', promise, verdict])
  }
  share('short round trip, polling, p50', of('p50'), promises.roundTrip)
  share('call, event loop, p50', of('calls'), promises.call)
  if (promises.sockets !== undefined) share('sockets, echo of 64 B, p50', of('sockets'), promises.sockets)
  rate('medium 4 KiB, one way', of('medium'), driver === 'ethernet' && mtu >= 9000 ? 1 : promises.medium)
  rate('long 1 MiB, one way', of('long'), promises.long)
  process.stdout.write(`${table.toString()}\n`)
}

export async function ablateBetweenHosts(driver: string, mtu: number, rounds: number): Promise<void> {
  const found = ABLATIONS.map(() => ({ p50Us: [] as number[], bytesPerSecond: [] as number[] }))
  await inRounds(driver, mtu, rounds, async network => {
    for (const [index, [mechanism, ablate]] of ABLATIONS.entries()) {
      process.stderr.write(`${mechanism}\n`)
      const settings = { FASTSOCKETS_ABLATE: ablate }
      const call = (what: string, count: number): Promise<Measured> =>
        network.callActive('manual', what, count, settings)
      found[index]?.p50Us.push((await call('round-trip', ROUND_TRIPS / ABLATED_SHARE)).p50Us ?? Number.NaN)
      found[index]?.bytesPerSecond.push(
        (await call('medium', MEDIUMS / ABLATED_SHARE)).bytesPerSecond ?? Number.NaN,
      )
    }
  })
  const table = newTable([`${driver}, MTU ${mtu}`, 'round trip, p50', 'medium 4 KiB'])
  for (const [index, [mechanism]] of ABLATIONS.entries()) {
    const { p50Us = [], bytesPerSecond = [] } = found[index] ?? {}
    table.push([
      mechanism,
      `${median(p50Us).toFixed(2)} us`,
      `${(median(bytesPerSecond) / GIGA).toFixed(3)} GB/s`,
    ])
  }
  process.stdout.write(`${table.toString()}\n`)
}

async function inRounds(
  driver: string,
  mtu: number,
  rounds: number,
  measure: (network: Network) => Promise<void>,
): Promise<void> {
  const network = openNetwork(driver, mtu)
  try {
    for (let round = 0; round < rounds; round++) {
      process.stderr.write(`round ${round + 1} of ${rounds}\n`)
      await measure(network)
    }
  } finally {
    network.close()
  }
}

function newTable(head: string[]): Table.Table {
  return new Table({ head, style: { head: [], border: [], compact: true } })
}
