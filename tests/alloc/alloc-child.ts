/**
 * Counts the bytes of garbage that a hot loop makes: no scavenge may come in between, hence the large new space that
 * alloc tests start this with.
 */
import { type Channel, type Endpoint, openEndpoint, ReliableInterface } from '../../am/index.ts'
import { connect, listen } from '../../fastsockets/raw/index.ts'
import { drivers, openLoopbackPair, type VirtualInterface } from '../../nic/index.ts'
import { openSide } from '../support/channels.ts'

const COUNT = 200_000
/** Of exchanges by the kernel, each of which takes longer. V8 makes up to 170 kB of its own in any number of them. */
const COUNT_BY_KERNEL = 60_000
const WARM_UP_ROUNDS = 5
const ROUNDS = 8
const BATCH = 16
const FRAME_LENGTH = 64
/** A poll may look at the clock, which makes some numbers of 16 bytes: over many frames that is nothing. */
const RELIABLE_BATCH = 250
const SINK = 5
const ECHO = 10
const ANSWER = 20
const PAYLOAD = Buffer.alloc(64, 1)

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

/** Bytes allocated per message of the best round, once `act` has run often enough: the compiler allocates, too. */
function measure(act: () => void, count = COUNT): number {
  for (let round = 0; round < WARM_UP_ROUNDS; round++) act()
  let least = Number.POSITIVE_INFINITY
  for (let round = WARM_UP_ROUNDS; round < ROUNDS; round++) {
    globalThis.gc?.()
    const before = process.memoryUsage().heapUsed
    act()
    least = Math.min(least, (process.memoryUsage().heapUsed - before) / count)
  }
  return least
}

function measureFrames(): number {
  const [near, far] = openLoopbackPair()
  const sink = new CountingSink()
  const bytes = measure(() => exchangeFrames(near, far, sink))
  if (sink.sum < ROUNDS * COUNT * FRAME_LENGTH) throw new Error('not every frame arrived')
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
  b.group.setHandler(SINK, message => {
    sum += message.word(1) + 1
  })
  const bytes = measure(() => exchangeMessages(a.channel, b.channel))
  if (sum < ROUNDS * COUNT) throw new Error('not every message arrived')
  return bytes
}

/** Two endpoints whose progress is made by hand; the asked one echoes the request. */
async function openPair(driver: string): Promise<[asking: Endpoint, answering: Endpoint]> {
  const options = { drivers: [driver], progress: 'manual' } as const
  const [a, b] = [await openEndpoint(options), await openEndpoint(options)]
  b.setHandler(ECHO, message => {
    if (message.length === 0) message.reply(ANSWER, message.word(0), message.word(1))
    else message.replyMedium(ANSWER, PAYLOAD, message.word(0), message.word(1))
  })
  await a.map(0, b.name)
  return [a, b]
}

async function measureRequests(driver: string, send: (from: Endpoint, i: number) => number): Promise<number> {
  const count = drivers.get(driver)?.needsAddress ? COUNT_BY_KERNEL : COUNT
  const [a, b] = await openPair(driver)
  let answers = 0
  a.setHandler(ANSWER, message => {
    answers += message.word(1)
  })
  const exchange = (): void => {
    for (let i = 0; i < count / BATCH; i++) {
      for (let j = 0; j < BATCH; j++) if (send(a, i) !== 0) throw new Error('it was refused')
      b.poll()
      a.poll()
    }
  }
  const bytes = measure(exchange, count)
  if (answers !== ROUNDS * count) throw new Error(`${answers} answers`)
  await Promise.all([a.close(), b.close()])
  return bytes
}

function measureShortRequests(driver: string): Promise<number> {
  return measureRequests(driver, (from, i) => from.request(0, ECHO, i, 1))
}

function measureMediumRequests(driver: string): Promise<number> {
  return measureRequests(driver, (from, i) => from.requestMedium(0, ECHO, PAYLOAD, i, 1))
}

/** Two raw sockets of this thread, over shared memory, that bounce 64 bytes without the event loop. */
async function measureRaw(): Promise<number> {
  const server = await listen({ host: '127.0.0.1' })
  const near = await connect({ host: '127.0.0.1', port: server.address.port })
  const far = await server.accept()
  const buffer = Buffer.alloc(FRAME_LENGTH)
  let received = 0
  const bytes = measure(() => {
    for (let i = 0; i < COUNT; i++) {
      near.trySend(PAYLOAD)
      received += far.tryRecv(buffer) ?? 0
      far.trySend(buffer)
      received += near.tryRecv(buffer) ?? 0
    }
  })
  if (received !== 2 * ROUNDS * COUNT * FRAME_LENGTH) throw new Error(`${received} bytes came`)
  near.close()
  far.close()
  server.close()
  return bytes
}

/** The same by message sockets. */
async function measureMessageSockets(): Promise<number> {
  const server = await listen({ type: 'datagram', host: '127.0.0.1' })
  const near = await connect({ type: 'datagram', host: '127.0.0.1', port: server.address.port })
  const far = await server.accept()
  const buffer = Buffer.alloc(FRAME_LENGTH)
  let received = 0
  const bytes = measure(() => {
    for (let i = 0; i < COUNT; i++) {
      near.trySend(PAYLOAD)
      received += far.tryRecv(buffer) ?? 0
      far.trySend(buffer)
      received += near.tryRecv(buffer) ?? 0
    }
  })
  if (received !== 2 * ROUNDS * COUNT * FRAME_LENGTH) throw new Error(`${received} bytes came`)
  near.close()
  far.close()
  server.close()
  return bytes
}

/** What shows that garbage is seen at all: one small object a round. */
function measureControl(): number {
  const kept: object[] = [{}]
  return measure(() => {
    for (let i = 0; i < COUNT; i++) kept[0] = { i }
  })
}

const measures: Record<string, (driver: string) => number | Promise<number>> = {
  control: measureControl,
  frames: measureFrames,
  reliable: measureReliable,
  messages: measureMessages,
  short: measureShortRequests,
  medium: measureMediumRequests,
  raw: measureRaw,
  messageSockets: measureMessageSockets,
}
const [what = '', driver = ''] = process.argv.slice(2)
process.send?.({ bytes: await measures[what]?.(driver) })
process.disconnect?.()
