/** However full the rings of hostile peers are, a turn of the victim's event loop is short. */
import t, { type Test } from 'tap'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

const PEERS = 16
/** Of the processor, in one turn. */
const TURN_MS_MAX = 10
const REPLAY_MS = 1000
/** The least of so many: in one of them V8 compiles, or collects garbage, within a turn. */
const REPLAYS = 5

interface Report {
  readonly longestMs: number
  readonly received: number
  readonly connections: number
}

async function startVictim(t: Test): Promise<{ victim: Child; port: number }> {
  const victim = new Child(t, program('flooded'), [], relinked())
  const { port } = await victim.receive<{ port: number }>()
  return { victim, port }
}

async function startPeers(t: Test, port: number, mode: string): Promise<Child[]> {
  const peers = Array.from(
    { length: PEERS },
    () => new Child(t, program('flooding'), [String(port), mode], relinked()),
  )
  for (const peer of peers) await peer.receive()
  for (const peer of peers) peer.send({})
  for (const peer of peers) t.match(await peer.receive(), { sent: Number })
  return peers
}

for (const mode of ['large', 'small', 'connects', 'credits'])
  t.test(`${PEERS} peers keep their rings full, with ${mode}`, { timeout: 120_000 }, async t => {
    const { victim, port } = await startVictim(t)
    const peers = await startPeers(t, port, mode)
    let shortestMs = Number.POSITIVE_INFINITY
    for (let replay = 0; replay < REPLAYS && shortestMs > TURN_MS_MAX; replay++) {
      const report = await victim.ask<Report>({ ms: REPLAY_MS })
      t.comment(
        `longest turn ${report.longestMs.toFixed(1)} ms, ${report.received} bytes, ${report.connections} connections`,
      )
      if (mode === 'large' || mode === 'small') t.ok(report.received > 0)
      if (mode === 'connects') t.ok(report.connections > 0)
      shortestMs = Math.min(shortestMs, report.longestMs)
    }
    t.ok(shortestMs <= TURN_MS_MAX, `${shortestMs.toFixed(1)} ms of the processor in a turn`)
    for (const peer of peers) t.equal(peer.process.exitCode, null, 'no peer was hung up on')
  })

for (const mode of ['small', 'connects'])
  t.test(`${PEERS} peers die at once, with rings full of ${mode}`, { timeout: 120_000 }, async t => {
    const { victim, port } = await startVictim(t)
    let shortestMs = Number.POSITIVE_INFINITY
    for (let replay = 0; replay < REPLAYS && shortestMs > TURN_MS_MAX; replay++) {
      const peers = await startPeers(t, port, mode)
      const report = victim.ask<Report>({ ms: 3 * REPLAY_MS })
      for (const peer of peers) peer.process.kill('SIGKILL')
      const { longestMs } = await report
      t.comment(`longest turn ${longestMs.toFixed(1)} ms`)
      shortestMs = Math.min(shortestMs, longestMs)
    }
    t.ok(shortestMs <= TURN_MS_MAX, `${shortestMs.toFixed(1)} ms of the processor in a turn`)
  })
