/** Endpoints over a bad network: what a handler sees is what was sent, once, however bad it is. */
import t, { type Test } from 'tap'
import { type Endpoint, OK, openEndpoint } from '../../am/index.ts'
import { type Driver, drivers, type FaultOptions, faultDriver } from '../../nic/index.ts'
import { seededRandom } from '../support/random.ts'

const COUNTED = 1
const MEDIUM = 2
const LONG = 3
const ECHO = 4
const ECHOED = 5
/** So many requests are sent before the other side polls. */
const BURST = 64

type Rates = Omit<FaultOptions, 'seed'>

async function openPair(t: Test, inner: string, rates: Rates, segment = 0): Promise<[Endpoint, Endpoint]> {
  const seed = seededRandom(t).word()
  const driver = faultDriver(drivers.get(inner) as Driver, { seed, ...rates })
  const open = (): Promise<Endpoint> => openEndpoint({ drivers: [driver], progress: 'manual', segment })
  const [near, far] = [await open(), await open()]
  // Both at once: each must hear what the other acknowledges.
  t.teardown(() => Promise.all([near.close(), far.close()]))
  await near.map(0, far.name)
  return [near, far]
}

/** Sends `count` messages that carry their number, and counts how often each was handled. */
function runCounted(near: Endpoint, far: Endpoint, count: number): { missing: number; wrong: number } {
  const seen = new Uint8Array(count)
  let handled = 0
  let wrong = 0
  far.setHandler(COUNTED, message => {
    const number = message.word(0)
    if (message.word(1) !== ~number || seen[number] !== 0) wrong++
    seen[number] = 1
    handled++
  })
  for (let sent = 0; handled + wrong < count; ) {
    for (let i = 0; i < BURST && sent < count; i++) {
      if (near.request(0, COUNTED, sent, ~sent) !== OK) break
      sent++
    }
    far.poll()
    near.poll()
  }
  return { missing: seen.filter(times => times === 0).length, wrong }
}

const nasty = (rate: number): Rates => ({
  loss: rate,
  duplication: rate,
  reordering: rate,
  corruption: rate,
})

const MOST = Number(process.env.FASTSOCKETS_TEST_FAULTS || 10_000_000)

for (const [inner, count, rate] of [
  ['loopback', MOST, 0.01],
  ['shm', 200_000, 0.01],
  ['loopback', 100_000, 0.2],
  ['shm', 20_000, 0.2],
] as const) {
  t.test(`${inner}: ${count} messages at ${rate * 100} % of every fault are handled once each`, async t => {
    const [near, far] = await openPair(t, inner, nasty(rate))
    t.strictSame(runCounted(near, far, count), { missing: 0, wrong: 0 })
    const reliability = near.stats().peers[0]?.reliability
    t.ok(reliability !== undefined && reliability.resent > 0, 'some of them were sent again')
    t.ok((far.stats().peers[0]?.reliability?.damaged ?? 0) > 0, 'some of them came damaged')
  })
}

t.test('payloads, long messages and replies are intact over a bad network', async t => {
  const ROUNDS = 300
  const [near, far] = await openPair(t, 'loopback', nasty(0.1), 1 << 20)
  const random = seededRandom(t)
  const payloads = Array.from({ length: ROUNDS }, () => random.bytes(random.within(0, 60_000)))
  let right = 0
  let answered = 0
  const check = (number: number, payload: Uint8Array): void => {
    if (Buffer.from(payload).equals(payloads[number] as Buffer)) right++
  }
  far.setHandler(MEDIUM, message => check(message.word(0), message.payload()))
  far.setHandler(LONG, message => check(message.word(0), message.payload()))
  far.setHandler(ECHO, message => message.replyMedium(ECHOED, message.payload(), message.word(0)))
  near.setHandler(ECHOED, message => {
    check(message.word(0), message.payload())
    answered++
  })
  const send = (attempt: () => number): void => {
    while (attempt() !== OK) {
      far.poll()
      near.poll()
    }
  }
  payloads.forEach((payload, number) => {
    send(() => near.requestMedium(0, MEDIUM, payload, number))
    send(() => near.requestLong(0, LONG, payload, 65_536 * (number % 8), number))
    send(() => near.requestMedium(0, ECHO, payload, number))
  })
  while (answered < ROUNDS) {
    far.poll()
    near.poll()
  }
  t.equal(right, 3 * ROUNDS)
})
