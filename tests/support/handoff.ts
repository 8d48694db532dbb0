/** The two sides of a shm handoff, made by hand: as a stranger, or a hostile peer, would. */
import { randomBytes } from 'node:crypto'
import { closeSync, fstatSync } from 'node:fs'
import net from 'node:net'
import {
  F_ADD_SEALS,
  F_SEAL_GROW,
  F_SEAL_SEAL,
  F_SEAL_SHRINK,
  MFD_ALLOW_SEALING,
  MFD_CLOEXEC,
  MSG_DONTWAIT,
  MSG_NOSIGNAL,
} from '../../nic/posix/constants.ts'
import { requireLibc } from '../../nic/posix/libc.ts'
import {
  connectAbstract,
  type ReceivedMessage,
  receiveMessage,
  sendMessage,
} from '../../nic/posix/unix-socket.ts'
import { RING_SIZE_MIN } from '../../nic/ring/ring-layout.ts'
import {
  ANSWER_MAGIC,
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
  REQUEST_SIZE,
  socketName,
  VERSION,
} from '../../nic/shm/handoff-layout.ts'
import { segmentBytes } from '../../nic/shm/segment.ts'
import { until } from './until.ts'

/** A connection to the side that made an offer, which sends any bytes. */
export class Caller {
  readonly #libc = requireLibc()
  readonly #blob: Buffer
  readonly #fd: number

  constructor(blob: Uint8Array) {
    this.#blob = Buffer.from(blob)
    const fd = connectAbstract(this.#libc, socketName(this.#blob.subarray(BLOB_NAME, BLOB_NONCE)))
    if (fd === undefined) throw new Error('too many callers wait there already')
    this.#fd = fd
  }

  say(bytes: Uint8Array, descriptors: readonly number[] = []): void {
    sendMessage(this.#libc, this.#fd, bytes, descriptors)
  }

  /** Says as much of `bytes` as the connection takes; false if that is nothing. */
  trySay(bytes: Uint8Array): boolean {
    return this.#libc.send(this.#fd, bytes, bytes.length, MSG_DONTWAIT | MSG_NOSIGNAL) > 0
  }

  /** What a connecting side has to say. */
  request(): Buffer {
    const request = Buffer.alloc(REQUEST_SIZE)
    request.writeUInt32LE(REQUEST_MAGIC, MAGIC)
    request.writeUInt32LE(HANDOFF_VERSION, VERSION)
    this.#blob.copy(request, REQUEST_NONCE, BLOB_NONCE)
    return request
  }

  answer(): Promise<ReceivedMessage> {
    return until('an answer', () => receiveMessage(this.#libc, this.#fd, 4096))
  }

  /** Whether the other side has hung up without a word, now or, with `await untilHungUp()`, in the end. */
  isHungUp(): boolean {
    try {
      return receiveMessage(this.#libc, this.#fd, 4096)?.bytes.length === 0
    } catch {
      // Reset: it did not even read what we said.
      return true
    }
  }

  async untilHungUp(): Promise<void> {
    await until('the end of the connection', () => this.isHungUp())
  }

  close(): void {
    this.#libc.close(this.#fd)
  }
}

/** The offering side, with answers that a test chooses. */
export class FakeOfferer {
  readonly blob: Buffer
  readonly #libc = requireLibc()
  readonly #server = new net.Server({ pauseOnConnect: true })
  readonly #callers: net.Socket[] = []
  #caller: net.Socket | undefined

  constructor() {
    const name = randomBytes(16)
    this.#server.on('connection', caller => this.#callers.push(caller))
    this.#server.listen({ path: `\0${socketName(name)}` })
    this.blob = Buffer.alloc(BLOB_SIZE)
    this.blob.writeUInt32LE(BLOB_MAGIC, MAGIC)
    this.blob.writeUInt32LE(HANDOFF_VERSION, VERSION)
    name.copy(this.blob, BLOB_NAME)
    randomBytes(NONCE_SIZE).copy(this.blob, BLOB_NONCE)
  }

  /** Waits for the request of the connecting side. */
  async takeRequest(): Promise<Buffer> {
    this.#caller = await until('a caller', () => this.#callers.shift())
    const message = await until('a request', () => receiveMessage(this.#libc, this.#fd, 4096))
    return message.bytes
  }

  /** Says `bytes`, passes `descriptors`, and closes its own copies of them. */
  answer(bytes: Uint8Array, descriptors: readonly number[]): void {
    sendMessage(this.#libc, this.#fd, bytes, descriptors)
    for (const descriptor of descriptors) closeSync(descriptor)
  }

  hangUp(): void {
    this.#caller?.destroy()
    this.#caller = undefined
  }

  close(): void {
    this.hangUp()
    this.#server.close()
  }

  /** The caller's descriptor. Node does not read from it: the connection is paused. */
  get #fd(): number {
    return (this.#caller as unknown as { _handle: { fd: number } })._handle.fd
  }
}

export function answerBytes(ringSize = RING_SIZE_MIN): Buffer {
  const answer = Buffer.alloc(ANSWER_SIZE)
  answer.writeUInt32LE(ANSWER_MAGIC, MAGIC)
  answer.writeUInt32LE(HANDOFF_VERSION, VERSION)
  answer.writeUInt32LE(ringSize >>> 0, ANSWER_RING_SIZE)
  return answer
}

/** A memfd of any size with any seals. */
export function openMemfd(size = segmentBytes(RING_SIZE_MIN), seals = F_SEAL_SHRINK | F_SEAL_GROW): number {
  const libc = requireLibc()
  const fd = libc.memfd_create('fastsockets-test', MFD_CLOEXEC | MFD_ALLOW_SEALING)
  libc.ftruncate(fd, size)
  libc.fcntl(fd, F_ADD_SEALS, seals | F_SEAL_SEAL)
  if (fstatSync(fd).size !== size) throw new Error('the memfd has another size')
  return fd
}
