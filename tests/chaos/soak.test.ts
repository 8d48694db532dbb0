/** Some seconds of what `npm run soak` does for hours. */
import { join } from 'node:path'
import t from 'tap'
import { Child } from '../support/child.ts'
import { relinked } from '../support/relinked.ts'
import { type Ports, Soak, SoakState } from './soak.ts'

/** Each of round trips and streams, in sessions, as in a long soak. */
const SOAK_MS = 6000
const SESSIONS = 3
const SESSION_MS = SOAK_MS / SESSIONS / 2
/** With what a busy machine adds: a stream ends when its last byte has been checked. */
const TIMEOUT_MS = 10 * SOAK_MS

t.test(
  'round trips and streams in turn, each byte where it belongs, in bounded memory',
  {
    timeout: TIMEOUT_MS,
  },
  async t => {
    const peer = new Child(t, new URL('./soak-peer.js', import.meta.url), [], relinked())
    const soak = new Soak(await peer.receive<Ports>())
    const path = join(t.testdir({}), 'state')
    for (let session = 1; session <= SESSIONS; session++) {
      // As if the soak had been stopped after each session.
      const state = new SoakState(path)
      const { done } = state
      const before = { ...done }
      done.roundTrips += await soak.exchange(Number.POSITIVE_INFINITY, performance.now() + SESSION_MS)
      done.bytes += await soak.stream(Number.POSITIVE_INFINITY, performance.now() + SESSION_MS)
      t.ok(done.roundTrips > before.roundTrips && done.bytes > before.bytes)
      state.save()
    }
    const { roundTrips, bytes } = new SoakState(path).done
    t.comment(`${roundTrips} round trips, ${(bytes / 1e9).toFixed(1)} GB`)
  },
)
