/**
 * Shared memory between two processes of one host (and one network namespace, in which abstract sockets live).
 *
 * The offering side listens on an abstract unix socket with a random name. The connecting side learns the name and a
 * nonce from the offer's blob, connects, and shows the nonce; each side asks the kernel who the other is (SO_PEERCRED)
 * and accepts, by default, only its own user. The offering side then makes the segment and passes it with SCM_RIGHTS.
 * The connection stays open: it is the doorbell of both sides.
 */
import { AsyncResource } from 'node:async_hooks'
import { NicError } from '../errors.ts'
import type { Availability, ConnectOptions, Driver, Offer, OfferOptions, VirtualInterface } from '../nic.ts'
import { Doorbell } from '../posix/doorbell.ts'
import { type Libc, loadLibc, requireLibc } from '../posix/libc.ts'
import { type Mapping, unmapShared } from '../posix/mapping.ts'
import { isOwnUser } from '../posix/own-user.ts'
import {
  type Credentials,
  connectAbstract,
  peerCredentials,
  type ReceivedMessage,
  receiveMessage,
  sendMessage,
} from '../posix/unix-socket.ts'
import { randomBytes } from '../random.ts'
import { nextTurn, performance, sleep } from '../real-time.ts'
import { isRingSize, RING_SIZE_DEFAULT } from '../ring/ring-layout.ts'
import { undisturbed } from '../threads/undisturbed.ts'
import { measureCopyCosts } from './copy-costs.ts'
import {
  ANSWER_DESCRIPTORS,
  ANSWER_MAGIC,
  ANSWER_PROBE,
  ANSWER_RING_SIZE,
  ANSWER_SIZE,
  BLOB_MAGIC,
  BLOB_NAME,
  BLOB_NONCE,
  BLOB_SIZE,
  HANDOFF_VERSION,
  MAGIC,
  NONCE_SIZE,
  REQUEST_MAGIC,
  REQUEST_NONCE,
  REQUEST_PROBE,
  REQUEST_SIZE,
  socketName,
  VERSION,
} from './handoff-layout.ts'
import { HandoffListener } from './handoff-listener.ts'
import { PROBE_VALUE, probeProcess } from './process-memory.ts'
import { createSegment, mapSegment } from './segment.ts'
import { ShmInterface } from './shm-interface.ts'

const TIMEOUT_MS_DEFAULT = 5000
/** Largest rings that a connection has: an offer, which a stranger may have made, says how large the frames are that we copy. */
const RING_CONNECTED_MAX = 16 * RING_SIZE_DEFAULT
/** An answer is looked for on every turn of the event loop for so long, and then at intervals. */
const ANSWER_EAGER_MS = 5
const ANSWER_INTERVAL_MS = 1

/** The word that peers read to see whether they may read us at all. Never written, never collected. */
const probe = Buffer.alloc(8)
probe.writeUInt32LE(PROBE_VALUE)

let listener: HandoffListener | undefined
/** What is there for all is in nobody's asynchronous context, and keeps none alive. */
const scope = new AsyncResource('FASTSOCKETSHANDOFF')

export const shmDriver: Driver = {
  name: 'shm',
  reach: 'host',
  measureCosts: measureCopyCosts,
  availability,
  offer,
  connect,
}

function availability(): Availability {
  const { libc, code, reason } = loadLibc()
  if (libc === undefined) return { usable: false, code, reason }
  try {
    undisturbed(() => libc.close(createSegment(libc, RING_SIZE_DEFAULT)))
    return { usable: true }
  } catch (error) {
    return { usable: false, code: 'MEMFD', reason: (error as Error).message }
  }
}

function offer(options: OfferOptions = {}): Offer {
  const libc = requireLibc()
  const ringSize = options.queueSize ?? RING_SIZE_DEFAULT
  if (!mayConnect(ringSize)) {
    throw new NicError('ERR_NIC_ARGUMENT', 'queueSize must be a power of two between 64 KiB and 16 MiB')
  }
  const allowUid = options.allowUid ?? isOwnUser
  listener ??= scope.runInAsyncScope(() => new HandoffListener(libc))
  const nonce = randomBytes(NONCE_SIZE)
  const { accepted, cancel } = listener.expect(
    nonce,
    options.timeoutMs ?? TIMEOUT_MS_DEFAULT,
    (bell, credentials, request) => {
      assertUid(credentials, allowUid)
      return undisturbed(() => answerRequest(libc, bell, credentials, request, ringSize))
    },
  )
  const blob = Buffer.alloc(BLOB_SIZE)
  blob.writeUInt32LE(BLOB_MAGIC, MAGIC)
  blob.writeUInt32LE(HANDOFF_VERSION, VERSION)
  listener.name.copy(blob, BLOB_NAME)
  nonce.copy(blob, BLOB_NONCE)
  return { blob, accepted, cancel }
}

/** The offering side's part: makes the segment, passes it, keeps its own end. */
function answerRequest(
  libc: Libc,
  bell: Doorbell,
  credentials: Credentials,
  request: Buffer,
  ringSize: number,
): VirtualInterface {
  const answer = Buffer.alloc(ANSWER_SIZE)
  answer.writeUInt32LE(ANSWER_MAGIC, MAGIC)
  answer.writeUInt32LE(HANDOFF_VERSION, VERSION)
  answer.writeUInt32LE(ringSize, ANSWER_RING_SIZE)
  answer.writeBigUInt64LE(libc.address(probe), ANSWER_PROBE)
  const mapping = passSegment(libc, bell, answer, ringSize)
  const rdmaReason = probeProcess(libc, credentials.pid, request.readBigUInt64LE(REQUEST_PROBE))
  return new ShmInterface(libc, {
    mapping,
    ringSize,
    offering: true,
    bell,
    peerPid: credentials.pid,
    rdmaReason,
  })
}

/** Makes a segment and gives it to the peer with `answer`; returns this side's mapping of it. */
function passSegment(libc: Libc, bell: Doorbell, answer: Buffer, ringSize: number): Mapping {
  const segment = createSegment(libc, ringSize)
  try {
    const mapping = mapSegment(libc, segment, ringSize)
    try {
      sendMessage(libc, bell.fd, answer, [segment])
      return mapping
    } catch (error) {
      unmapShared(libc, mapping)
      throw error
    }
  } finally {
    libc.close(segment)
  }
}

async function connect(blob: Uint8Array, options: ConnectOptions = {}): Promise<VirtualInterface> {
  const libc = requireLibc()
  const address = Buffer.from(blob)
  if (
    address.length !== BLOB_SIZE ||
    address.readUInt32LE(MAGIC) !== BLOB_MAGIC ||
    address.readUInt32LE(VERSION) !== HANDOFF_VERSION
  ) {
    throw new NicError('ERR_NIC_BAD_ADDRESS', 'this is not the address of a shm offer')
  }
  const name = socketName(address.subarray(BLOB_NAME, BLOB_NONCE))
  const deadlineMs = performance.now() + (options.timeoutMs ?? TIMEOUT_MS_DEFAULT)
  const bell = await untilThere(deadlineMs, () => {
    const fd = connectAbstract(libc, name)
    return fd === undefined ? undefined : new Doorbell(libc, fd)
  })
  try {
    const credentials = peerCredentials(libc, bell.fd)
    assertUid(credentials, options.allowUid ?? isOwnUser)
    const request = Buffer.alloc(REQUEST_SIZE)
    request.writeUInt32LE(REQUEST_MAGIC, MAGIC)
    request.writeUInt32LE(HANDOFF_VERSION, VERSION)
    address.copy(request, REQUEST_NONCE, BLOB_NONCE, BLOB_NONCE + NONCE_SIZE)
    request.writeBigUInt64LE(libc.address(probe), REQUEST_PROBE)
    sendMessage(libc, bell.fd, request, [])
    return await untilThere(deadlineMs, () => {
      const answer = receiveMessage(libc, bell.fd, ANSWER_SIZE, ANSWER_DESCRIPTORS)
      return answer && takeAnswer(libc, bell, answer, credentials)
    })
  } catch (error) {
    bell.close()
    throw error
  }
}

/** The connecting side's part: checks everything that came, maps the segment, keeps its own end. */
function takeAnswer(
  libc: Libc,
  bell: Doorbell,
  { bytes, descriptors }: ReceivedMessage,
  credentials: Credentials,
): VirtualInterface {
  const [segment] = descriptors
  try {
    if (
      bytes.length !== ANSWER_SIZE ||
      bytes.readUInt32LE(MAGIC) !== ANSWER_MAGIC ||
      bytes.readUInt32LE(VERSION) !== HANDOFF_VERSION ||
      segment === undefined
    ) {
      throw new NicError('ERR_NIC_CONNECT_FAILED', 'the offering side refused, or answered something else')
    }
    const ringSize = bytes.readUInt32LE(ANSWER_RING_SIZE)
    if (!mayConnect(ringSize)) throw new NicError('ERR_NIC_PROTOCOL_VIOLATION', `ring size ${ringSize}`)
    return new ShmInterface(libc, {
      mapping: mapSegment(libc, segment, ringSize),
      ringSize,
      offering: false,
      bell,
      peerPid: credentials.pid,
      rdmaReason: probeProcess(libc, credentials.pid, bytes.readBigUInt64LE(ANSWER_PROBE)),
    })
  } finally {
    for (const descriptor of descriptors) libc.close(descriptor)
  }
}

/**
 * The connection, or what is made of the answer, once it is there. Nobody tells us when a busy offering side lets more
 * callers wait; and Node must not read from the connection before us, because it would lose the descriptor. So we look.
 */
async function untilThere<T>(deadlineMs: number, take: () => T | undefined): Promise<T> {
  const startMs = performance.now()
  for (;;) {
    const taken = undisturbed(take)
    if (taken !== undefined) return taken
    const nowMs = performance.now()
    if (nowMs >= deadlineMs)
      throw new NicError('ERR_NIC_CONNECT_FAILED', 'the offering side did not answer in time')
    await (nowMs - startMs < ANSWER_EAGER_MS ? nextTurn() : sleep(ANSWER_INTERVAL_MS))
  }
}

function mayConnect(ringSize: number): boolean {
  return isRingSize(ringSize) && ringSize <= RING_CONNECTED_MAX
}

function assertUid(credentials: Credentials, allowUid: (uid: number) => boolean): void {
  if (!allowUid(credentials.uid)) {
    throw new NicError('ERR_NIC_PEER_REFUSED', `user ${credentials.uid} is not accepted`)
  }
}
