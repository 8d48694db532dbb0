/**
 * Shared memory between two processes of one host.
 *
 * The offering side listens on an abstract unix socket with a random name, which only its network namespace has, and for
 * peers of other namespaces on a socket in the rendezvous folder. The connecting side learns the name and a
 * nonce from the offer's blob, connects, and shows the nonce. Each side asks the kernel for the other's user
 * (SO_PEERCRED) and accepts, by default, only its own. Then the offering side makes the segment and passes it with
 * SCM_RIGHTS. The connection stays open as the doorbell of both sides.
 */
import { AsyncResource } from 'node:async_hooks'
import { readFileSync } from 'node:fs'
import { NicError } from '../errors.ts'
import type {
  Availability,
  ConnectOptions,
  Driver,
  MemoryOptions,
  Offer,
  OfferOptions,
  VirtualInterface,
} from '../nic.ts'
import { performance } from '../performance.ts'
import { Doorbell } from '../posix/doorbell.ts'
import { type Libc, loadLibc, requireLibc } from '../posix/libc.ts'
import { type Mapping, unmapShared } from '../posix/mapping.ts'
import { isOwnUser } from '../posix/own-user.ts'
import { isSealable } from '../posix/sealed-memory.ts'
import { socketPair } from '../posix/socket-pair.ts'
import {
  type Credentials,
  connectAbstract,
  isUnixStream,
  peerCredentials,
  type ReceivedMessage,
  receiveMessage,
  refuseDescriptorsAt,
  sendMessage,
} from '../posix/unix-socket.ts'
import { randomBytes } from '../random.ts'
import { nextTurn, sleep } from '../real-time.ts'
import { connectByName, isNoWay } from '../rendezvous/looking-up.ts'
import { handoffName } from '../rendezvous/names-layout.ts'
import { isRingSize, RING_SIZE_DEFAULT } from '../ring/ring-layout.ts'
import { undisturbed } from '../threads/undisturbed.ts'
import { measureCopyCosts } from './copy-costs.ts'
import {
  ANSWER_MAGIC,
  ANSWER_MEMORY,
  ANSWER_RING_SIZE,
  ANSWER_SIZE,
  BLOB_MAGIC,
  BLOB_NAME,
  BLOB_NONCE,
  BLOB_SIZE,
  HANDOFF_VERSION,
  MAGIC,
  NONCE_SIZE,
  PROCESS_MEMORY,
  REQUEST_MAGIC,
  REQUEST_MEMORY,
  REQUEST_NONCE,
  REQUEST_SIZE,
  SEGMENTS,
  socketName,
  VERSION,
} from './handoff-layout.ts'
import { HandoffListener } from './handoff-listener.ts'
import { openPeerProcess, type PeerProcess } from './peer-process.ts'
import { createSegment, mapSegment } from './segment.ts'
import { closePassed, SegmentExchange, strangeUsers } from './segment-exchange.ts'
import { allocateShared } from './shared-memory.ts'
import { ShmInterface } from './shm-interface.ts'

const TIMEOUT_MS_DEFAULT = 5000
/** Largest ring size of a connection. The offering side, perhaps a stranger, chooses it, and so the size of frames. */
const RING_CONNECTED_MAX = 16 * RING_SIZE_DEFAULT
/** For so long the answer is polled in every iteration of the event loop; then at intervals. */
const ANSWER_EAGER_MS = 5
const ANSWER_INTERVAL_MS = 1

let listener: HandoffListener | undefined
/** The listener serves the whole thread, so it runs in this module's asynchronous context and keeps no other alive. */
const scope = new AsyncResource('FASTSOCKETSHANDOFF')

export const shmDriver: Driver = {
  name: 'shm',
  reach: 'host',
  measureCosts: measureCopyCosts,
  allocate: allocateShared,
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
    const filter = hasSeccompFilter() ? ', and a seccomp filter judges its system calls' : ''
    return { usable: false, code: 'MEMFD', reason: `${(error as Error).message}${filter}` }
  }
}

/** As container runtimes set one (proc_pid_status(5)). */
function hasSeccompFilter(): boolean {
  try {
    return /^Seccomp:\s*2$/m.test(readFileSync('/proc/thread-self/status', 'utf8'))
  } catch {
    return false
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
  if (options.isThroughFolder === true) listener.openInFolder()
  const nonce = randomBytes(NONCE_SIZE)
  const { accepted, cancel } = listener.expect(
    nonce,
    options.timeoutMs ?? TIMEOUT_MS_DEFAULT,
    (bell, credentials, request) => {
      assertUid(credentials, allowUid)
      strangeUsers.assertPassesMemory(credentials.uid)
      return undisturbed(() => answerRequest(libc, bell, credentials, request, { ...options, ringSize }))
    },
  )
  const blob = Buffer.alloc(BLOB_SIZE)
  blob.writeUInt32LE(BLOB_MAGIC, MAGIC)
  blob.writeUInt32LE(HANDOFF_VERSION, VERSION)
  listener.name.copy(blob, BLOB_NAME)
  nonce.copy(blob, BLOB_NONCE)
  return { blob, accepted, cancel }
}

/** The offering side: makes the segment, passes it, and returns its interface. */
function answerRequest(
  libc: Libc,
  bell: Doorbell,
  credentials: Credentials,
  request: Buffer,
  options: MemoryOptions & { readonly ringSize: number },
): VirtualInterface {
  const { ringSize } = options
  const memory = request.readUInt32LE(REQUEST_MEMORY) & memoryWanted(options)
  const answer = Buffer.alloc(ANSWER_SIZE)
  answer.writeUInt32LE(ANSWER_MAGIC, MAGIC)
  answer.writeUInt32LE(HANDOFF_VERSION, VERSION)
  answer.writeUInt32LE(ringSize, ANSWER_RING_SIZE)
  answer.writeUInt32LE(memory, ANSWER_MEMORY)
  const segment = createSegment(libc, ringSize)
  const pair = (memory & SEGMENTS) === 0 ? undefined : socketPair()
  const exchange = pair && new SegmentExchange(libc, pair.near, credentials.uid)
  let mapping: Mapping | undefined
  try {
    mapping = mapSegment(libc, segment, ringSize)
    sendMessage(libc, bell.fd, answer, pair === undefined ? [segment] : [segment, pair.far])
    const peerProcess = processOf(libc, bell, credentials, memory)
    return new ShmInterface(libc, { mapping, ringSize, offering: true, bell, exchange, peerProcess })
  } catch (error) {
    if (mapping !== undefined) unmapShared(libc, mapping)
    exchange?.close()
    throw error
  } finally {
    libc.close(segment)
    if (pair !== undefined) libc.close(pair.far)
  }
}

function memoryWanted({ sharesMemory = false, readsPeer = false }: MemoryOptions): number {
  return (sharesMemory ? SEGMENTS : 0) | (readsPeer ? PROCESS_MEMORY : 0)
}

function processOf(
  libc: Libc,
  bell: Doorbell,
  credentials: Credentials,
  memory: number,
): PeerProcess | string {
  if ((memory & PROCESS_MEMORY) === 0) return 'ZCopy between processes was not asked for by both sides'
  return openPeerProcess(libc, bell.fd, credentials)
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
  const id = address.subarray(BLOB_NAME, BLOB_NONCE)
  const allowUid = options.allowUid ?? isOwnUser
  const call = (): number | undefined =>
    options.isThroughFolder === true
      ? callInFolder(libc, id, allowUid)
      : connectAbstract(libc, socketName(id))
  const deadlineMs = performance.now() + (options.timeoutMs ?? TIMEOUT_MS_DEFAULT)
  const bell = await untilThere(deadlineMs, () => {
    const fd = call()
    return fd === undefined ? undefined : new Doorbell(libc, fd)
  })
  try {
    const credentials = peerCredentials(libc, bell.fd)
    assertUid(credentials, allowUid)
    strangeUsers.assertPassesMemory(credentials.uid)
    const request = Buffer.alloc(REQUEST_SIZE)
    request.writeUInt32LE(REQUEST_MAGIC, MAGIC)
    request.writeUInt32LE(HANDOFF_VERSION, VERSION)
    address.copy(request, REQUEST_NONCE, BLOB_NONCE, BLOB_NONCE + NONCE_SIZE)
    const memory = memoryWanted(options)
    request.writeUInt32LE(memory, REQUEST_MEMORY)
    sendMessage(libc, bell.fd, request, [])
    return await untilThere(deadlineMs, () => {
      const answer = receiveMessage(libc, bell.fd, ANSWER_SIZE)
      return answer && handleAnswer(libc, bell, answer, credentials, memory, options.queueSizeMax)
    })
  } catch (error) {
    bell.close()
    throw error
  }
}

function callInFolder(libc: Libc, id: Uint8Array, allowUid: (uid: number) => boolean): number | undefined {
  const outcome = connectByName(libc, handoffName(id), allowUid)
  if (isNoWay(outcome)) throw new NicError('ERR_NIC_CONNECT_FAILED', outcome.text)
  return outcome
}

/** The connecting side: checks the answer and its descriptors, maps the segment, and returns its interface. */
function handleAnswer(
  libc: Libc,
  bell: Doorbell,
  { bytes, descriptors }: ReceivedMessage,
  credentials: Credentials,
  wanted: number,
  ringSizeMax = RING_CONNECTED_MAX,
): VirtualInterface {
  const [segment, connection] = descriptors
  const passed = [...descriptors]
  let exchange: SegmentExchange | undefined
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
    const memory = bytes.readUInt32LE(ANSWER_MEMORY)
    if (!mayConnect(ringSize) || ringSize > ringSizeMax)
      throw violation(`ring size ${ringSize}; the most is ${ringSizeMax}`)
    if ((memory & ~wanted) !== 0) throw violation('more memory is shared than was asked for')
    const sharesMemory = (memory & SEGMENTS) !== 0
    if (descriptors.length !== (sharesMemory ? 2 : 1) || !isSealable(libc, segment)) {
      throw violation('other descriptors were passed than the answer says')
    }
    if (connection !== undefined && !isUnixStream(libc, connection))
      throw violation('no connection was passed')
    if (connection !== undefined) {
      passed.pop()
      exchange = new SegmentExchange(libc, connection, credentials.uid)
    }
    const mapping = mapSegment(libc, segment, ringSize)
    refuseDescriptorsAt(bell.fd)
    const peerProcess = processOf(libc, bell, credentials, memory)
    return new ShmInterface(libc, { mapping, ringSize, offering: false, bell, exchange, peerProcess })
  } catch (error) {
    exchange?.close()
    throw error
  } finally {
    closePassed(libc, passed, credentials.uid)
  }
}

function violation(text: string): NicError {
  return new NicError('ERR_NIC_PROTOCOL_VIOLATION', text)
}

/**
 * Calls `attempt` until it returns a value or the deadline passes. No event can replace this: none reports that a full
 * backlog has room again, and Node must not read the answer from the connection, because Node would discard the
 * descriptors.
 */
async function untilThere<T>(deadlineMs: number, attempt: () => T | undefined): Promise<T> {
  const startMs = performance.now()
  for (;;) {
    const result = undisturbed(attempt)
    if (result !== undefined) return result
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
