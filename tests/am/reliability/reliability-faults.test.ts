/** A bad network in between, in one thread and between two processes: each frame once, in order, intact. */
import t, { type Test } from 'tap'
import { ReliableInterface } from '../../../am/index.ts'
import {
  type Driver,
  drivers,
  type FaultCounts,
  type FaultOptions,
  openLoopbackPair,
  wrapWithFaults,
} from '../../../nic/index.ts'
import { Child } from '../../support/child.ts'
import { NumberedExchange } from '../../support/numbered-exchange.ts'
import { seededRandom } from '../../support/random.ts'
import { until, withWatchdog } from '../../support/until.ts'
import type { Task } from './reliability-peer-child.ts'

const shm = drivers.get('shm') as Driver
const availability = shm.availability()
/** A few seconds on a machine of one's own; two processes that must wait for a core at every turn take much longer. */
const PATIENCE_MS = 120_000
const fixture = new URL('./reliability-peer-child.js', import.meta.url)

interface Network {
  readonly name: string
  readonly count: number
  readonly faults: Omit<FaultOptions, 'seed'>
}

const NETWORKS: readonly Network[] = [
  {
    name: 'a million frames each way at 1 % of every fault',
    count: 1_000_000,
    faults: {
      loss: 0.01,
      duplication: 0.01,
      reordering: 0.01,
      corruption: 0.01,
      delay: 0.01,
      delayMs: [0, 1],
      stall: 0.01,
      stallMs: 0.02,
    },
  },
  {
    name: '100 000 frames each way at 20 % of loss, duplication, reordering and corruption',
    count: 100_000,
    faults: { loss: 0.2, duplication: 0.2, reordering: 0.2, corruption: 0.2 },
  },
]

/** A run in which nothing went wrong would prove nothing. */
function checkFaults(t: Test, counts: FaultCounts, { faults, count }: Network): void {
  t.ok(counts.sent >= count)
  const struck = {
    loss: counts.lost,
    duplication: counts.duplicated,
    reordering: counts.reordered,
    corruption: counts.corrupted,
    delay: counts.delayed,
    stall: counts.stalls,
  }
  for (const [fault, number] of Object.entries(struck)) {
    const rate = faults[fault as keyof typeof struck] ?? 0
    // One stall does not begin within another.
    t.ok(number >= rate * count * 0.1, `${fault}: ${number}`)
  }
}

for (const network of NETWORKS) {
  t.test(`loopback: ${network.name}`, async t => {
    const random = seededRandom(t)
    const wires = openLoopbackPair().map(end =>
      wrapWithFaults(end, { ...network.faults, seed: random.word() }),
    )
    const ends = wires.map(wire => new ReliableInterface(wire))
    const exchanges = ends.map(end => new NumberedExchange(end, network.count))
    t.teardown(() => {
      for (const end of ends) end.close()
    })
    await withWatchdog('all frames', Promise.all(exchanges.map(exchange => exchange.done)), PATIENCE_MS)
    for (const { sink, sent } of exchanges) {
      t.match(
        { sent, received: sink.next, wrong: sink.wrong },
        { sent: network.count, received: network.count, wrong: 0 },
      )
    }
    await until('all acknowledgements', () => ends.every(end => end.unacknowledged === 0))
    for (const wire of wires) checkFaults(t, wire.counts, network)
    for (const end of ends) t.match(end.stats, { delivered: network.count, refused: 0 })
  })

  const skip = availability.usable ? false : availability.reason
  // The same code over another driver: a fifth shows it.
  const part = { ...network, count: network.count / 5 }
  t.test(`shm, two processes: a fifth of ${network.name}`, { skip }, async t => {
    const random = seededRandom(t)
    const child = new Child(t, fixture)
    const offer = shm.offer()
    const task: Task = {
      blob: Buffer.from(offer.blob).toString('base64'),
      count: part.count,
      faults: { ...network.faults, seed: random.word() },
    }
    child.send(task)
    const wire = wrapWithFaults(await offer.accepted, { ...network.faults, seed: random.word() })
    const end = new ReliableInterface(wire)
    t.teardown(() => end.close())
    const exchange = new NumberedExchange(end, part.count)
    await withWatchdog('all frames', exchange.done, PATIENCE_MS)
    t.match({ received: exchange.sink.next, wrong: exchange.sink.wrong }, { received: part.count, wrong: 0 })
    const peer = await child.receive<{ received: number; wrong: number; counts: FaultCounts }>()
    t.match(peer, { received: part.count, wrong: 0 })
    checkFaults(t, wire.counts, part)
    checkFaults(t, peer.counts, part)
    t.equal(end.state, 'open')
  })
}
