/**
 * A peer that keeps the rules of active messages and breaks those of sockets: wrong socket numbers, sequences, windows
 * and claims of what was consumed, between messages that are right. Everything that can be sent over the ring goes
 * through the real channel and streams; nothing throws, nothing stalls, and what a program was given is what was allowed.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { WINDOW } from '../../fastsockets/stream/stream-layout.ts'
import { liveMemory } from '../support/garbage.ts'
import { HostileSockets } from '../support/hostile-sockets.ts'
import { Random, seededRandom } from '../support/random.ts'

const ROUNDS = 300
const MESSAGES = 150
/** The same seed again, as the collector may run in one of them. */
const REPLAYS = 3
const REPLAYS_MAX = 8
const STALL_MAX_MS = 10
const GROWTH_MAX = 4 * 2 ** 20

interface Outcome {
  readonly turnsMs: number[]
  readonly broken: number
  readonly sent: number
  readonly given: number
  readonly wrong: string[]
}

async function play(seed: number): Promise<Outcome> {
  const random = new Random(seed)
  const outcome = { turnsMs: [] as number[], broken: 0, sent: 0, given: 0, wrong: [] as string[] }
  for (let i = 0; i < ROUNDS; i++) {
    const round = new HostileSockets(random)
    for (let message = 0; message < MESSAGES && !round.isGone; message++) outcome.turnsMs.push(round.step())
    if (round.isGone) outcome.broken++
    round.close()
    await nextTurn()
    await nextTurn()
    const given = round.sockets.reduce((sum, { received }) => sum + received, 0)
    if (given > round.sentBytes) outcome.wrong.push(`round ${i}: ${given} bytes of ${round.sentBytes}`)
    for (const { endings, stream } of round.sockets) {
      if (endings > 1) outcome.wrong.push(`round ${i}: ${endings} ends of one socket`)
      if (stream.waitingLength > WINDOW) outcome.wrong.push(`round ${i}: ${stream.waitingLength} bytes kept`)
    }
    outcome.sent += round.sent
    outcome.given += given
  }
  return outcome
}

t.test(`${ROUNDS} hostile peers, each on a channel of its own`, async t => {
  const { seed } = seededRandom(t)
  const first = await play(seed)
  t.strictSame(first.wrong, [])
  t.ok(first.broken > ROUNDS / 4, `${first.broken} of them were thrown out`)
  t.ok(first.given > 0 && first.sent > ROUNDS, `${first.sent} messages, ${first.given} bytes to the program`)
  const before = await liveMemory()
  // The CPU time of a turn has that of the compiler's and the collector's threads in it, which no two replays spend in the same turn: a
  // turn counts by the least that it took. Budgets count time, so that replays may part; then they have other turns.
  let { turnsMs } = first
  for (let i = 1; i < REPLAYS || (longest(turnsMs) >= STALL_MAX_MS && i < REPLAYS_MAX); i++)
    turnsMs = leastOf(turnsMs, (await play(seed)).turnsMs)
  const worstMs = longest(turnsMs)
  const growth = (await liveMemory()) - before
  t.ok(growth < GROWTH_MAX, `${growth} bytes more after the replays`)
  t.ok(worstMs < STALL_MAX_MS, `the longest turn took ${worstMs.toFixed(2)} ms of CPU`)
})

function leastOf(turnsMs: number[], others: number[]): number[] {
  if (turnsMs.length === others.length) return turnsMs.map((ms, i) => Math.min(ms, others[i] as number))
  return longest(turnsMs) < longest(others) ? turnsMs : others
}

function longest(turnsMs: number[]): number {
  return turnsMs.reduce((most, ms) => Math.max(most, ms), 0)
}
