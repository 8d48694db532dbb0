/**
 * Counts the bytes of garbage that a hot loop makes: no scavenge may come in between, hence the large new space that
 * alloc tests start this with.
 */
import { type Channel, ReliableInterface } from '../../am/index.ts'
import { openLoopbackPair, type VirtualInterface } from '../../nic/index.ts'
import { openSide } from '../support/channels.ts'

const COUNT = 200_000
const BATCH = 16
const FRAME_LENGTH = 64
/** A poll may look at the clock, which makes some numbers of 16 bytes: over many frames that is nothing. */
const RELIABLE_BATCH = 250
const SINK = 5

class CountingSink {
  sum = 0

  handleFrame(bytes: Uint8Array, offset: number, length: number): void {
    this.sum += (bytes[offset] as number) + length
  }
}

function exchangeFrames(near: VirtualInterface, far: VirtualInterface, sink: CountingSink): void {
  for (let i = 0; i < COUNT / BATCH; i++) {
    for (let j = 0; j < BATCH; j++) {
      const at = near.reserve(FRAME_LENGTH)
      near.sendBytes[at] = j
      near.sendWords[(at + 8) >> 2] = i
      near.commit(FRAME_LENGTH)
    }
    far.poll(sink, BATCH)
  }
}

function exchangeMessages(from: Channel, to: Channel): void {
  for (let i = 0; i < COUNT / BATCH; i++) {
    for (let j = 0; j < BATCH; j++) {
      from.reserveRequest(SINK, 2, 0)
      from.putWord(0, i)
      from.putWord(1, j)
      from.commit(0)
    }
    to.progress(BATCH)
    from.progress(BATCH)
  }
}

/** Bytes allocated per round of `act`, after it has run often enough to be compiled. */
function measure(act: () => void): number {
  for (let warmUp = 0; warmUp < 5; warmUp++) act()
  globalThis.gc?.()
  const before = process.memoryUsage().heapUsed
  act()
  return (process.memoryUsage().heapUsed - before) / COUNT
}

function measureFrames(): number {
  const [near, far] = openLoopbackPair()
  const sink = new CountingSink()
  const bytes = measure(() => exchangeFrames(near, far, sink))
  if (sink.sum < 6 * COUNT * FRAME_LENGTH) throw new Error('not every frame arrived')
  return bytes
}

function exchangeReliably(near: VirtualInterface, far: VirtualInterface, sink: CountingSink): void {
  for (let i = 0; i < COUNT / RELIABLE_BATCH; i++) {
    for (let j = 0; j < RELIABLE_BATCH; j++) {
      // Long enough that copying it by a view would show.
      const at = near.reserve(4 * FRAME_LENGTH)
      near.sendBytes[at] = j
      near.sendWords[(at + 8) >> 2] = i
      near.commit(4 * FRAME_LENGTH)
    }
    far.poll(sink, RELIABLE_BATCH)
    near.poll(sink, RELIABLE_BATCH)
  }
}

function measureReliable(): number {
  const [near, far] = openLoopbackPair().map(end => new ReliableInterface(end)) as [
    ReliableInterface,
    ReliableInterface,
  ]
  const sink = new CountingSink()
  const bytes = measure(() => exchangeReliably(near, far, sink))
  if (sink.sum < 6 * COUNT * 4 * FRAME_LENGTH) throw new Error('not every frame arrived')
  if (far.stats.early > 0) throw new Error('not every frame came in order')
  return bytes
}

function measureMessages(): number {
  const [near, far] = openLoopbackPair()
  const a = openSide(near)
  const b = openSide(far)
  let sum = 0
  b.endpoint.setHandler(SINK, message => {
    sum += message.word(1) + 1
  })
  const bytes = measure(() => exchangeMessages(a.channel, b.channel))
  if (sum < 6 * COUNT) throw new Error('not every message arrived')
  return bytes
}

/** What shows that garbage is seen at all: one small object a round. */
function measureControl(): number {
  const kept: object[] = [{}]
  return measure(() => {
    for (let i = 0; i < COUNT; i++) kept[0] = { i }
  })
}

const measures = {
  frames: measureFrames,
  reliable: measureReliable,
  messages: measureMessages,
  control: measureControl,
}
process.send?.({ bytes: measures[process.argv[2] as keyof typeof measures]() })
process.disconnect?.()
