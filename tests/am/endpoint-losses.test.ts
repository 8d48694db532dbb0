/**
 * A network that loses, doubles and delays one frame in a hundred each: every message arrives exactly once. The bridge between
 * the hosts is a process of this test. `FASTSOCKETS_TEST_MESSAGES` says how many requests each side sends.
 */
import t, { type Test } from 'tap'
import type { EndpointStats } from '../../am/index.ts'
import type { Question as BridgeQuestion, Counts } from '../support/bad-bridge.ts'
import { seededRandom } from '../support/random.ts'
import {
  childOn,
  type Host,
  keyFileOf,
  makeHostsApart,
  noTwoHosts,
  type Switch,
} from '../support/two-hosts.ts'
import type { Question, Report } from './endpoint-questions.ts'

const skip = noTwoHosts()
if (skip) t.comment(`SKIPPED: endpoints over a bad network: ${skip}`)

const ENDPOINT = new URL('./endpoint-child.js', import.meta.url)
const BRIDGE = new URL('../support/bad-bridge.js', import.meta.url)
/** So many at a time, for the watchdog. */
const BATCH = 10_000
const COUNT =
  Math.max(1, Math.round((Number(process.env.FASTSOCKETS_TEST_MESSAGES) || BATCH) / BATCH)) * BATCH
const SIZE = 40

async function openBridge(t: Test, { namespace, nearPort, farPort }: Switch) {
  const place: Host = { namespace, device: '', address: '' }
  const bridge = childOn(t, place, BRIDGE, [nearPort, farPort, String(seededRandom(t).seed)])
  await bridge.receive()
  return bridge
}

for (const driver of ['ethernet', 'tcp']) {
  t.test(`${driver}: ${2 * COUNT} requests and their answers arrive exactly once`, { skip }, async t => {
    const { near, far, between } = makeHostsApart(t)
    const bridge = await openBridge(t, between)
    const env = { FASTSOCKETS_KEY_FILE: keyFileOf(t) }
    const sides = [near, far].map(host => childOn(t, host, ENDPOINT, ['all'], env))
    const names: string[] = []
    for (const side of sides) {
      const options = { drivers: [driver], listen: '0.0.0.0:7400' }
      names.unshift((await side.ask<{ name: string }>({ ask: 'open', options } satisfies Question)).name)
    }
    for (const [index, side] of sides.entries())
      await side.ask({ ask: 'map', destination: 0, name: names[index] as string } satisfies Question)
    await bridge.ask({ ask: 'misbehave' } satisfies BridgeQuestion)
    const flood: Question = { ask: 'flood', destination: 0, count: BATCH, size: SIZE }
    for (let sent = 0; sent < COUNT; sent += BATCH) {
      for (const side of sides) side.send(flood)
      for (const side of sides) await side.receive<Report>()
    }
    for (const side of sides) {
      t.match((await side.ask<EndpointStats>({ ask: 'stats' } satisfies Question)).peers[0], { driver })
      const report = await side.ask<Report>({ ask: 'report' } satisfies Question)
      t.match(report, { answered: COUNT, echoed: COUNT, wrong: 0, returned: 0 })
    }
    const counts = await bridge.ask<Counts>({ ask: 'counts' } satisfies BridgeQuestion)
    t.comment(JSON.stringify(counts))
    for (const fault of ['lost', 'doubled', 'delayed'] as const) t.ok(counts[fault] > 0, fault)
  })
}
