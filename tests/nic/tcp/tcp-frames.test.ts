/** A peer that is connected by the driver tcp and breaks its rules, or goes in each of the ways there are. */
import type net from 'node:net'
import t, { type Test } from 'tap'
import { BROKEN, type Driver, drivers, type VirtualInterface } from '../../../nic/index.ts'
import { decodeBlob } from '../../../nic/tcp/blob-layout.ts'
import { callListener } from '../../../nic/tcp/calling.ts'
import { KIND_BYE, KIND_CREDIT, KIND_FRAME, KIND_SHIFT } from '../../../nic/tcp/frame-layout.ts'
import { Collector, drain, patterned, sendFrame } from '../../support/frames.ts'
import { seededRandom } from '../../support/random.ts'
import { until } from '../../support/until.ts'

const QUEUE_SIZE = 64 * 1024
/** More than the kernel keeps of a connection whose reader does not read. */
const LARGE_QUEUE_SIZE = 16 << 20
const LARGE_FRAMES = 7
const driver = drivers.get('tcp') as Driver

/** An interface, and a socket in place of the other one. */
async function open(t: Test, queueSize = QUEUE_SIZE): Promise<{ end: VirtualInterface; peer: net.Socket }> {
  const offer = driver.offer({ queueSize })
  const blob = decodeBlob(offer.blob)
  if (blob === undefined) throw new Error('no blob')
  const calling = { key: undefined, checksUser: false, offer: blob }
  const peer = await callListener({ host: '127.0.0.1', port: blob.port }, calling, 5000)
  const end = await offer.accepted
  t.teardown(() => {
    end.close()
    peer.destroy()
  })
  return { end, peer }
}

function frame(
  kind: number,
  length: number,
  released = 0,
  content: Buffer = Buffer.alloc(length, 5),
): Buffer {
  const bytes = Buffer.alloc(8 + ((content.length + 7) & ~7))
  bytes.writeInt32LE((kind << KIND_SHIFT) | length, 0)
  bytes.writeInt32LE(released, 4)
  content.copy(bytes, 8)
  return bytes
}

async function untilBroken(end: VirtualInterface): Promise<Buffer[]> {
  const collector = new Collector()
  await until('the end', () => end.poll(collector, 64) === BROKEN)
  return collector.frames
}

const VIOLATIONS: readonly [what: string, bytes: Buffer][] = [
  ['a kind that there is not', frame(0, 0)],
  ['another one', frame(9, 8)],
  ['a frame longer than the longest', frame(KIND_FRAME, QUEUE_SIZE / 8 + 1)],
  ['the longest length of all', Buffer.alloc(8, 0xff)],
  ['a credit with content', frame(KIND_CREDIT, 8)],
  ['bytes handled that were never sent', frame(KIND_CREDIT, 0, 1)],
  ['fewer bytes handled than before', frame(KIND_CREDIT, 0, -1)],
  ['a frame after the goodbye', Buffer.concat([frame(KIND_BYE, 0), frame(KIND_FRAME, 8)])],
  [
    'more than the window holds',
    Buffer.concat(Array.from({ length: 9 }, () => frame(KIND_FRAME, QUEUE_SIZE / 8))),
  ],
]

for (const [what, bytes] of VIOLATIONS) {
  t.test(`the connection ends with ERR_NIC_PROTOCOL_VIOLATION: ${what}`, async t => {
    const { end, peer } = await open(t)
    peer.write(bytes)
    // Nothing is taken, so that the window stays full.
    await until('the violation', () => end.poll(new Collector(), 0) === BROKEN || (end.arm(0) && false))
    t.match(end.failure, { code: 'ERR_NIC_PROTOCOL_VIOLATION' })
    t.equal(end.reserve(8), BROKEN)
  })
}

t.test('frames in any pieces are put together', async t => {
  const { end, peer } = await open(t)
  const random = seededRandom(t)
  const contents = Array.from({ length: 40 }, (_, i) => patterned(random.within(0, 300), i))
  const bytes = Buffer.concat(contents.map(content => frame(KIND_FRAME, content.length, 0, content)))
  const collector = new Collector()
  for (let at = 0; at < bytes.length; ) {
    const length = random.within(1, 40)
    peer.write(bytes.subarray(at, at + length))
    at += length
    await new Promise(resolve => setImmediate(resolve))
    end.poll(collector, 64)
  }
  await until('all frames', () => {
    end.poll(collector, 64)
    return collector.frames.length === contents.length
  })
  t.strictSame(collector.frames, contents)
})

t.test('the frames of a burst go, though nobody polls, and all in their order', async t => {
  const { end, peer } = await open(t)
  const contents = Array.from({ length: 20 }, (_, i) => patterned(100 * i, i))
  const sent = Buffer.concat(contents.map(content => frame(KIND_FRAME, content.length, 0, content)))
  for (const content of contents) t.equal(sendFrame(end, content), 0)
  const received: Buffer[] = []
  for await (const bytes of peer) {
    received.push(bytes as Buffer)
    if (Buffer.concat(received).length >= sent.length) break
  }
  t.strictSame(Buffer.concat(received), sent)
})

for (const [what, sendOne] of [
  ['in the queue', (end: VirtualInterface, content: Buffer) => sendFrame(end, content)],
  ['of the caller', sendBodyOf],
] as const) {
  t.test(`a sleeping interface sends later what the kernel has no room for: memory ${what}`, async t => {
    const { end, peer } = await open(t, LARGE_QUEUE_SIZE)
    t.equal(end.arm(0), true)
    const content = patterned(end.capabilities.frameMax - 8, 1)
    for (let i = 0; i < LARGE_FRAMES; i++) t.equal(sendOne(end, content), 0)
    content.fill(0)
    const sent = frame(KIND_FRAME, content.length, 0, patterned(content.length, 1))
    const received: Buffer[] = []
    let length = 0
    for await (const bytes of peer) {
      received.push(bytes as Buffer)
      length += (bytes as Buffer).length
      if (length >= LARGE_FRAMES * sent.length) break
    }
    const whole = Buffer.concat(received)
    t.equal(whole.length, LARGE_FRAMES * sent.length)
    for (let i = 0; i < LARGE_FRAMES; i++)
      t.ok(whole.subarray(i * sent.length, (i + 1) * sent.length).equals(sent), `frame ${i}`)
  })
}

function sendBodyOf(end: VirtualInterface, content: Buffer): number {
  const at = end.reserve(content.length)
  if (at < 0) return at
  end.sendBytes.set(content.subarray(0, 8), at)
  end.commitFrom?.(8, content, 8, content.length - 8)
  return 0
}

t.test('random bytes break the connection, and nothing else', async t => {
  const random = seededRandom(t)
  for (let round = 0; round < 50; round++) {
    const { end, peer } = await open(t)
    const noise = Buffer.from(Array.from({ length: random.within(8, 3000) }, () => random.within(0, 255)))
    peer.end(noise)
    await untilBroken(end)
    t.match(end.failure, { code: /^ERR_NIC_(PROTOCOL_VIOLATION|PEER_RESET)$/ })
    end.close()
  }
})

t.test('three ends are told apart: a goodbye, the end of the process, a reset', async t => {
  const bye = await open(t)
  bye.peer.end(Buffer.concat([frame(KIND_FRAME, 8), frame(KIND_BYE, 0)]))
  const collector = new Collector()
  await until('the frame', () => bye.end.poll(collector, 8) === 1)
  for (let i = 0; i < 10; i++) {
    t.equal(bye.end.poll(collector, 8), 0)
    await new Promise(resolve => setImmediate(resolve))
  }
  t.equal(bye.end.state, 'open')

  const dead = await open(t)
  dead.peer.end(frame(KIND_FRAME, 8))
  t.equal((await untilBroken(dead.end)).length, 1, 'what was sent before is delivered')
  t.match(dead.end.failure, { code: 'ERR_NIC_PEER_RESET', message: /process has ended/ })

  const reset = await open(t)
  reset.peer.resetAndDestroy()
  await untilBroken(reset.end)
  t.match(reset.end.failure, { code: 'ERR_NIC_PEER_RESET', message: /ECONNRESET/ })
})

t.test('an armed interface hears of each end', async t => {
  for (const leave of [(peer: net.Socket) => peer.end(), (peer: net.Socket) => peer.resetAndDestroy()]) {
    const { end, peer } = await open(t)
    let rings = 0
    end.setDoorbell(() => void rings++)
    end.ref()
    t.equal(end.arm(0), true)
    leave(peer)
    await until('the doorbell', () => rings === 1)
    t.equal(end.poll(new Collector(), 1), BROKEN)
  }
})

t.test('a peer that reads nothing fills the queue, and a sender can still close', async t => {
  const { end, peer } = await open(t)
  peer.pause()
  let sent = 0
  while (sendFrame(end, patterned(1000, sent)) === 0) sent++
  t.ok(sent * 1000 <= QUEUE_SIZE)
  t.equal(drain(end).length, 0)
  end.close()
  t.equal(end.state, 'closed')
})
