/** Strangers on the segment: they see every frame, and forge, repeat and flood. Within this host, at the loopback device. */
import t, { type Test } from 'tap'
import { decodeAddress, OFFER_MAGIC, REPLY_MAGIC } from '../../../nic/ethernet/address-layout.ts'
import { deviceFor } from '../../../nic/ethernet/device.ts'
import { EthernetInterface } from '../../../nic/ethernet/ethernet-interface.ts'
import {
  AT_ETHERTYPE,
  ETHERNET_SIZE,
  ETHERTYPE,
  frameMaxOf,
  HEADER_SIZE,
  KIND_ANSWER,
  KIND_FRAME,
  KIND_HELLO,
  MTU_MAX,
} from '../../../nic/ethernet/frame-layout.ts'
import { type FrameKey, KEYS_SIZE, keysFrom } from '../../../nic/ethernet/frame-tag.ts'
import { openPacketSocket } from '../../../nic/ethernet/open-socket.ts'
import { PacketSocket } from '../../../nic/ethernet/packet-socket.ts'
import { ringShape } from '../../../nic/ethernet/ring-layout.ts'
import { type Driver, drivers } from '../../../nic/index.ts'
import { requireLibc } from '../../../nic/posix/libc.ts'
import { Collector, drain, patterned, sendFrame } from '../../support/frames.ts'
import { seededRandom } from '../../support/random.ts'
import { until } from '../../support/until.ts'

const driver = drivers.get('ethernet') as Driver
const availability = driver.availability()
const skip = availability.usable ? false : availability.reason
if (skip) t.comment(`SKIPPED: frames of strangers: ${skip}`)

interface Segment {
  readonly near: EthernetInterface
  readonly far: EthernetInterface
  /** Sends any bytes to `far`, behind its ID. */
  forge(bytes: Buffer): void
  /** The last frame that was sent to `far`, with its Ethernet header. */
  overheard(): Buffer
}

async function makeSegment(t: Test): Promise<Segment> {
  const libc = requireLibc()
  const offer = driver.offer({ queueSize: 64 * 1024 })
  const replies: Uint8Array[] = []
  const connecting = driver.connect(offer.blob, {
    reply: bytes => {
      replies.push(bytes)
      offer.answer?.(bytes)
    },
  })
  const [near, far] = (await Promise.all([connecting, offer.accepted])) as [
    EthernetInterface,
    EthernetInterface,
  ]
  const farId = decodeAddress(OFFER_MAGIC, offer.blob)?.id as Buffer
  t.ok(decodeAddress(REPLY_MAGIC, replies[0] as Uint8Array))
  const fd = openPacketSocket(libc, farId)
  const stranger = new PacketSocket(libc, fd, deviceFor(libc, fd, undefined), 64 * 1024)
  const words = new Int32Array(stranger.memory)
  const { slotSize, slotsPerBlock, slotCount, blockSize } = stranger.shape
  t.teardown(() => {
    near.close()
    far.close()
    stranger.close()
  })
  return {
    near,
    far,
    forge(bytes) {
      const frame = Buffer.concat([Buffer.alloc(ETHERNET_SIZE), farId, bytes])
      frame.writeUInt16BE(ETHERTYPE, AT_ETHERTYPE)
      libc.send(fd, frame, frame.length, 0)
    },
    overheard() {
      let last = Buffer.alloc(0)
      for (let slot = 0; slot < slotCount; slot++) {
        const at = Math.floor(slot / slotsPerBlock) * blockSize + (slot % slotsPerBlock) * slotSize
        if (((words[at / 4] as number) & 1) === 0) break
        const from = at + ((words[at / 4 + 3] as number) & 0xffff)
        last = Buffer.from(stranger.memory.slice(from, from + (words[at / 4 + 2] as number)))
      }
      return last
    },
  }
}

/** All of a frame behind the ID. */
const behindId = (frame: Buffer): Buffer => frame.subarray(ETHERNET_SIZE + 8)

t.test('a frame that is repeated counts once', { skip }, async t => {
  const { near, far, forge, overheard } = await makeSegment(t)
  sendFrame(near, patterned(100, 1))
  const frame = overheard()
  t.strictSame(drain(far), [patterned(100, 1)])
  for (let i = 0; i < 10; i++) forge(behindId(frame))
  t.strictSame(drain(far), [])
  t.equal(far.replayed, 10)
  sendFrame(near, patterned(10, 2))
  t.strictSame(drain(far), [patterned(10, 2)])
})

t.test('a frame in which any byte is changed is dropped', { skip }, async t => {
  const { near, far, forge, overheard } = await makeSegment(t)
  sendFrame(near, patterned(40, 1))
  drain(far)
  const original = behindId(overheard())
  const random = seededRandom(t)
  for (let at = 0; at < original.length; at++) {
    const changed = Buffer.from(original)
    changed[at] = (changed[at] as number) ^ random.within(1, 255)
    forge(changed)
    t.strictSame(drain(far), [], `byte ${at}`)
  }
  t.equal(far.refused, original.length)
})

t.test('noise is dropped, however much; frames of the peer arrive between', { skip }, async t => {
  const { near, far, forge } = await makeSegment(t)
  const random = seededRandom(t)
  for (let round = 0; round < 200; round++) {
    for (let i = 0; i < 3; i++) {
      const noise = random.bytes(random.within(0, 200))
      if (noise.length >= HEADER_SIZE - 8)
        noise.writeInt32LE([KIND_FRAME, KIND_HELLO, KIND_ANSWER][i] as number, HEADER_SIZE - 12)
      forge(noise)
    }
    sendFrame(near, patterned(20, round))
    t.strictSame(drain(far), [patterned(20, round)], `round ${round}`)
  }
  t.ok(far.refused >= 600)
  t.equal(far.state, 'open')
})

t.test('a flood costs frames, and nothing else: the queue is as long as it was posted', { skip }, async t => {
  const { near, far, forge } = await makeSegment(t)
  for (let i = 0; i < 1000; i++) forge(Buffer.alloc(100))
  t.ok(far.takeDrops() > 900)
  drain(far)
  sendFrame(near, patterned(20, 1))
  t.strictSame(drain(far), [patterned(20, 1)])
})

t.test('a poll ends though frames of strangers go on', { skip }, async t => {
  const { far, forge } = await makeSegment(t)
  for (let i = 0; i < 100; i++) forge(Buffer.alloc(100))
  t.equal(far.poll(new Collector(), 10), 0)
})

t.test('a side that has met its peer tells it so, and need not be polled for that', { skip }, async t => {
  const libc = requireLibc()
  const ids = [Buffer.alloc(8, 1), Buffer.alloc(8, 2)]
  const keys = keysFrom(new ArrayBuffer(KEYS_SIZE))
  const [near, far] = [0, 1].map(own => {
    const fd = openPacketSocket(libc, ids[own] as Buffer)
    const device = deviceFor(libc, fd, undefined)
    const end = new EthernetInterface(libc, new PacketSocket(libc, fd, device, 64 * 1024), device, {
      peerMac: device.mac,
      peerId: ids[1 - own] as Buffer,
      mtu: device.mtu,
      receiveDescriptors: 8,
      sendKey: keys[own] as FrameKey,
      receiveKey: keys[1 - own] as FrameKey,
    })
    t.teardown(() => end.close())
    return end
  }) as [EthernetInterface, EthernetInterface]
  let isMet = false
  void near.meet(60_000).then(() => {
    isMet = true
  })
  // Answers HELLOs of `near`, and says none of its own yet.
  await until('the meeting', () => far.poll(new Collector(), 1) === 0 && isMet)
  await far.meet(500)
})

t.test('with another shared key nobody is heard', { skip }, async t => {
  const offer = driver.offer()
  // As if somebody between the two had changed the reply.
  const reply = (bytes: Uint8Array): void => {
    const changed = Buffer.from(bytes)
    changed[63] = (changed[63] as number) ^ 1
    offer.answer?.(changed)
  }
  const results = await Promise.allSettled([driver.connect(offer.blob, { reply }), offer.accepted])
  for (const result of results)
    t.match(result, {
      status: 'rejected',
      reason: { code: 'ERR_NIC_CONNECT_FAILED', message: /no frame of/ },
    })
})

t.test('addresses without a device, or behind a router, are refused with the reason', { skip }, async t => {
  const reject = (path: { own: string; peer: string }, message: RegExp): void => {
    t.throws(() => driver.offer({ path }), { code: 'ERR_NIC_UNAVAILABLE', message })
  }
  reject({ own: '192.0.2.1', peer: '192.0.2.2' }, /no network device here has the address 192\.0\.2\.1/)
  reject({ own: '127.0.0.1', peer: '192.0.2.2' }, /192\.0\.2\.2 is not on the segment of lo/)
})

t.test('each slot of a ring holds the longest frame, for any device', async t => {
  for (const mtu of [576, 1500, 1501, MTU_MAX, 65_536]) {
    for (const queueSize of [64 * 1024, 1 << 20]) {
      const { slotSize, slotsPerBlock, blockSize, blockCount, slotCount } = ringShape(queueSize, mtu)
      t.ok(slotSize >= 96 + ETHERNET_SIZE + HEADER_SIZE + frameMaxOf(mtu) && slotSize % 16 === 0)
      t.ok(
        slotsPerBlock * slotSize <= blockSize && slotCount === slotsPerBlock * blockCount && slotCount >= 8,
      )
      t.ok(blockCount * blockSize <= Math.max(2 * queueSize, 3 * blockSize))
    }
  }
})
