/** Changes words of a ring in shared memory until it is stopped: the peer's side of kinds/double-fetch.ts. */
import { parentPort, workerData } from 'node:worker_threads'
import { RING_SIZE_MIN } from '../../../nic/ring/ring-layout.ts'
import { Random } from '../../support/random.ts'
import { RingMemory } from '../../support/ring-memory.ts'
import { scribble } from '../../support/ring-scribbles.ts'
import { STATE } from './kinds/double-fetch.ts'

const FLIPS_EACH = 16
/** Between two bursts, so that the victim gets somewhere. */
const PAUSE_TURNS = 60
const { memory, state } = workerData as { memory: SharedArrayBuffer; state: Int32Array }
const ring = new RingMemory(RING_SIZE_MIN, memory as unknown as ArrayBuffer)
parentPort?.postMessage('ready')
for (;;) {
  Atomics.wait(state, STATE.isFlipping, 0)
  const random = new Random(Atomics.load(state, STATE.seed))
  while (Atomics.load(state, STATE.isFlipping) === 1) {
    for (let i = 0; i < FLIPS_EACH; i++) {
      scribble(ring, random)
      for (let turn = random.within(0, PAUSE_TURNS); turn > 0; turn--) Atomics.load(state, STATE.isFlipping)
    }
    Atomics.add(state, STATE.flips, FLIPS_EACH)
  }
}
