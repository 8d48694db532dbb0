/**
 * Bytes of garbage that a frame costs: `--expose-gc` and a large new space, as in tests/alloc. With `shared` as its argument, over
 * ends that have their receives of the shared queue.
 */
import { type Driver, drivers, type FrameSink, type VirtualInterface } from '../../../nic/index.ts'
import { RING_SIZE_MIN } from '../../../nic/verbs/frame-layout.ts'
import { requireAdapter } from '../../../nic/verbs/open-adapter.ts'

const COUNT = 4096
/** Fewer than the receives of an end that shares. */
const BATCH = 8
/** The emulator is slow, and the compiler shares its core with us: so often until the loop is compiled. */
const ROUNDS_MAX = 40
/** Bytes a frame; no object is that small. */
const NOTHING = 0.5
const FRAME_LENGTH = 64

const verbs = drivers.get('verbs') as Driver
const { sharedReceives } = requireAdapter()

async function connect(): Promise<[VirtualInterface, VirtualInterface]> {
  const offer = verbs.offer({ queueSize: RING_SIZE_MIN })
  return await Promise.all([verbs.connect(offer.blob), offer.accepted])
}

let ends = await connect()
if (process.argv[2] === 'shared') while (sharedReceives.granted === 0) ends = await connect()
const [near, far] = ends
let arrived = 0
const sink: FrameSink = {
  handleFrame() {
    arrived++
  },
}

function exchangeFrames(): void {
  for (let i = 0; i < COUNT; i += BATCH) {
    const before = arrived
    for (let j = 0; j < BATCH; j++) {
      const at = near.reserve(FRAME_LENGTH)
      near.sendBytes[at] = j
      near.commit(FRAME_LENGTH)
    }
    while (arrived - before < BATCH) far.poll(sink, BATCH)
  }
}

/** What shows that garbage is seen at all. */
const kept: object[] = [{}]
function makeGarbage(): void {
  for (let i = 0; i < COUNT; i++) kept[0] = { i }
}

/** Bytes a frame of the best round: what is not compiled yet allocates, and so does the compiler. */
function measure(act: () => void): number {
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS_MAX && least > NOTHING; round++) {
    globalThis.gc?.()
    const before = process.memoryUsage().heapUsed
    act()
    least = Math.min(least, (process.memoryUsage().heapUsed - before) / COUNT)
  }
  return least
}

// To look costs some kilobytes by itself, which are much for so few frames.
const look = measure(() => {})
const bytes = measure(exchangeFrames) - look
const { granted } = sharedReceives
console.log(JSON.stringify({ bytes, control: measure(makeGarbage) - look, look, granted }))
process.exit()
