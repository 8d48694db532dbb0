/** Operations of the hot path, alone: each is called again and again in one process. */

import { AckQueue } from '../../am/ack-queue.ts'
import { FrameWriter } from '../../am/frame-writer.ts'
import { ChannelGroup } from '../../am/index.ts'
import { KIND_REQUEST } from '../../am/message-layout.ts'
import { openLoopbackPair, type VirtualInterface } from '../../nic/index.ts'
import { RingConsumer } from '../../nic/ring/ring-consumer.ts'
import { RING_SIZE_DEFAULT, ringBytes } from '../../nic/ring/ring-layout.ts'
import { RingProducer } from '../../nic/ring/ring-producer.ts'
import { RegistrationCache } from '../../nic/verbs/registration-cache.ts'
import type { VerbsAdapter } from '../../nic/verbs/verbs-adapter.ts'

const SIZE = 64
const HANDLER = 1
const WORDS = 4

export interface Operation {
  readonly name: string
  /** Allocates the operation's data, and returns the operation. */
  prepare(): () => void
}

export const OPERATIONS: readonly Operation[] = [
  { name: 'ring-claim-and-publish', prepare: prepareRing },
  { name: 'frame-encode', prepare: prepareEncode },
  { name: 'dispatch', prepare: prepareDispatch },
  { name: 'registration-look-up', prepare: prepareLookUp },
]

/** A frame of 64 bytes claimed and published, and taken out by the consumer, or the ring would be full. */
function prepareRing(): () => void {
  const memory = new ArrayBuffer(ringBytes(RING_SIZE_DEFAULT))
  const producer = new RingProducer(memory, 0, RING_SIZE_DEFAULT)
  const consumer = new RingConsumer(memory, 0, RING_SIZE_DEFAULT)
  const sink = { handleFrame() {} }
  return () => {
    producer.reserve(SIZE)
    producer.commit(SIZE)
    consumer.poll(sink, 1)
  }
}

/** The header and four words of a request, without a ring. */
function prepareEncode(): () => void {
  const sendWords = new Int32Array(SIZE)
  const nowhere = { sendWords, reserve: () => 0, commit: () => {} } as unknown as VirtualInterface
  const writer = new FrameWriter(nowhere, new AckQueue(SIZE))
  return () => {
    writer.reserve(KIND_REQUEST, HANDLER, 0, WORDS, 0, 0)
    for (let i = 0; i < WORDS; i++) writer.putWord(i, i)
    writer.commit(0)
  }
}

/** A short request from its sender to its handler, over the loopback driver. */
function prepareDispatch(): () => void {
  const owner = {
    peerName: 'the peer',
    destination: undefined,
    handleProgress() {},
    roomWanted: () => 0,
    handleBroken() {},
  }
  const [near, far] = openLoopbackPair().map(end => {
    const group = new ChannelGroup({ progress: 'manual' })
    return { group, channel: group.attach(end, { credits: SIZE, owner }) }
  })
  if (near === undefined || far === undefined) throw new Error('a pair has two ends')
  const seen = new Int32Array(1)
  far.group.handlers.set(HANDLER, message => {
    seen[0] = message.word(0)
  })
  return () => {
    // Without credit: poll until the other side has returned some.
    if (near.channel.reserveRequest(HANDLER, WORDS, 0) >= 0) {
      for (let i = 0; i < WORDS; i++) near.channel.putWord(i, i)
      near.channel.commit(0)
    } else near.group.poll()
    far.group.poll()
  }
}

/** Memory that is registered already is asked for again, as each transfer over RDMA does. */
function prepareLookUp(): () => void {
  const counters = { cacheHits: 0, cacheMisses: 0, cacheExtensions: 0 }
  const adapter = {
    counters,
    verbs: { libc: { address: () => 0n } },
    register: (_address: bigint, length: number) => ({ pointer: 0n, lkey: 1, rkey: 1, length }),
  } as unknown as VerbsAdapter
  const cache = new RegistrationCache(adapter)
  const access = { remoteRead: true, remoteWrite: false }
  const buffers = Array.from({ length: 16 }, () => new Uint8Array(65_536))
  for (const bytes of buffers) cache.acquire(bytes, access)
  let next = 0
  return () => {
    const bytes = buffers[next++ % buffers.length] as Uint8Array
    cache.release(cache.acquire(bytes, access))
  }
}
