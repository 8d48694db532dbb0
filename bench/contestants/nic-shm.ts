/** The shared-memory driver without the layers above it. The first word of each frame is its type. */
import { drivers, type FrameSink, type VirtualInterface } from '../../nic/index.ts'
import type { LatencyHistogram } from '../latency-histogram.ts'
import type { Client, Contestant, Received } from './contestant.ts'
import { leaveWithParent } from './parent.ts'

const ECHO = 1
const DATA = 2
/** Asks for the bytes received since the last COUNT. */
const COUNT = 3
const STOP = 4

const HEADER_SIZE = 8
/** The answer to COUNT: bytes and milliseconds, after the header. */
const COUNTED_SIZE = HEADER_SIZE + 16
const OFFER_TIMEOUT_MS = 60_000

export const contestant: Contestant = {
  name: 'nic-shm',
  what: 'the shared-memory driver by itself, polling: a copy into the ring, a copy out of it',
  abilities: ['pingPong', 'stream'],
  polls: true,
  relinked: [],
  partner: 'server',
  serve: async () => {
    const offer = shm().offer({ timeoutMs: OFFER_TIMEOUT_MS })
    void offer.accepted.then(end => new Server(end).run())
    return Buffer.from(offer.blob).toString('base64')
  },
  dial: async address => new ShmClient(await shm().connect(Buffer.from(address, 'base64'))),
}

function shm() {
  const driver = drivers.get('shm')
  if (driver === undefined) throw new Error('there is no shm driver')
  return driver
}

/** Sends one frame, and waits for room in the ring; the peer polls and so makes room. */
function send(end: VirtualInterface, kind: number, payload: Uint8Array | undefined, length: number): void {
  const size = HEADER_SIZE + length
  let place = end.reserve(size)
  while (place < 0) {
    leaveWithParent()
    place = end.reserve(size)
  }
  end.sendWords[place >> 2] = kind
  if (payload !== undefined) end.sendBytes.set(payload, place + HEADER_SIZE)
  end.commit(size)
}

class Server implements FrameSink {
  readonly #end: VirtualInterface
  readonly #into: Uint8Array
  #isOver = false
  #bytes = 0
  #startMs = 0

  constructor(end: VirtualInterface) {
    this.#end = end
    this.#into = new Uint8Array(end.capabilities.frameMax)
  }

  run(): void {
    while (!this.#isOver && this.#end.poll(this, 64) >= 0) leaveWithParent()
    this.#end.close()
  }

  handleFrame(bytes: Uint8Array, offset: number, length: number): void {
    const kind = this.#end.receiveWords[offset >> 2]
    if (kind === DATA) {
      if (this.#bytes === 0) this.#startMs = performance.now()
      this.#bytes += length - HEADER_SIZE
      this.#into.set(bytes.subarray(offset + HEADER_SIZE, offset + length))
    } else if (kind === ECHO) {
      send(this.#end, ECHO, bytes.subarray(offset + HEADER_SIZE, offset + length), length - HEADER_SIZE)
    } else if (kind === COUNT) {
      const counted = new Float64Array([this.#bytes, performance.now() - this.#startMs])
      send(this.#end, COUNT, new Uint8Array(counted.buffer), COUNTED_SIZE - HEADER_SIZE)
      this.#bytes = 0
    } else {
      this.#isOver = true
    }
  }
}

class ShmClient implements Client, FrameSink {
  readonly #end: VirtualInterface
  readonly #chunkMax: number
  #echoed = 0
  #received: Received | undefined

  constructor(end: VirtualInterface) {
    this.#end = end
    this.#chunkMax = end.capabilities.frameMax - HEADER_SIZE
  }

  handleFrame(bytes: Uint8Array, offset: number, length: number): void {
    if (this.#end.receiveWords[offset >> 2] === ECHO) {
      this.#echoed += length - HEADER_SIZE
      return
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset + offset + HEADER_SIZE)
    this.#received = { bytes: view.getFloat64(0, true), ms: view.getFloat64(8, true) }
  }

  async pingPong(size: number, ms: number, latencies: LatencyHistogram): Promise<void> {
    const payload = Buffer.alloc(Math.min(size, this.#chunkMax), 1)
    const last = payload.subarray(0, size % payload.length || payload.length)
    const endMs = performance.now() + ms
    let startMs = performance.now()
    while (startMs < endMs) {
      this.#echoed = 0
      for (let left = size; left > 0; ) {
        const chunk = left > last.length ? payload : last
        // Frames larger than half the ring would wait for room that comes with their own echoes.
        if (this.#end.hasRoom(HEADER_SIZE + chunk.length)) {
          send(this.#end, ECHO, chunk, chunk.length)
          left -= chunk.length
        } else this.#poll()
      }
      while (this.#echoed < size) this.#poll()
      const nowMs = performance.now()
      latencies.recordMs(nowMs - startMs)
      startMs = nowMs
    }
  }

  async stream(size: number, ms: number): Promise<Received> {
    const payload = Buffer.alloc(Math.min(size, this.#chunkMax), 1)
    const last = payload.subarray(0, size % payload.length || payload.length)
    const endMs = performance.now() + ms
    do {
      for (let left = size; left > 0; ) {
        const chunk = left > last.length ? payload : last
        send(this.#end, DATA, chunk, chunk.length)
        left -= chunk.length
      }
    } while (performance.now() < endMs)
    this.#received = undefined
    send(this.#end, COUNT, undefined, 0)
    for (;;) {
      this.#poll()
      if (this.#received !== undefined) return this.#received
    }
  }

  async close(): Promise<void> {
    send(this.#end, STOP, undefined, 0)
    // The peer has polled it when its side is gone.
    this.#end.close()
  }

  #poll(): void {
    if (this.#end.poll(this, 64) < 0) throw new Error('the other half is gone')
    leaveWithParent()
  }
}
