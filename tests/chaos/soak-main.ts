/**
 * `npm run soak`: 24 million round trips and 1 TB, or what the command line says, with a line of progress for each session.
 *
 *   npm run soak -- [--round-trips N] [--bytes N] [--state FILE]
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { relinked } from '../support/relinked.ts'
import { type Ports, Soak, SoakState } from './soak.ts'

// Each session proves its wire.
process.env.FASTSOCKETS_START ||= 'fast'

const SESSION_ROUND_TRIPS = 500_000
const SESSION_BYTES = 2 ** 34

const { values } = parseArgs({
  options: {
    'round-trips': { type: 'string', default: '24000000' },
    bytes: { type: 'string', default: '1000000000000' },
    state: { type: 'string', default: 'soak.log' },
  },
})
const wanted = { roundTrips: Number(values['round-trips']), bytes: Number(values.bytes) }
if (!Number.isSafeInteger(wanted.roundTrips) || !Number.isSafeInteger(wanted.bytes))
  throw new TypeError('--round-trips and --bytes are whole numbers')

const state = new SoakState(values.state)
const { done } = state
const peer = fork(new URL('./soak-peer.js', import.meta.url), relinked())
const soak = new Soak((await once(peer, 'message'))[0] as Ports)

function say(): void {
  console.log(
    `${new Date().toISOString()} ${done.roundTrips} of ${wanted.roundTrips} round trips, ` +
      `${(done.bytes / 1e9).toFixed(1)} of ${(wanted.bytes / 1e9).toFixed(1)} GB`,
  )
}

say()
while (done.roundTrips < wanted.roundTrips || done.bytes < wanted.bytes) {
  const roundTrips = Math.min(SESSION_ROUND_TRIPS, wanted.roundTrips - done.roundTrips)
  if (roundTrips > 0) done.roundTrips += await soak.exchange(roundTrips)
  const bytes = Math.min(SESSION_BYTES, wanted.bytes - done.bytes)
  if (bytes > 0) done.bytes += await soak.stream(bytes)
  state.save()
  say()
}
peer.disconnect()
