/**
 * One end of a connection over a plain Ethernet device, as the contract of nic.ts: frames may be lost, doubled and
 * reordered, but are neither damaged nor forged. One send(2) a frame; a received frame is handed over in the kernel's ring.
 */
import { isMainThread } from 'node:worker_threads'
import { atomics } from '../atomics.ts'
import { NicError } from '../errors.ts'
import type { Capabilities, DoorbellAnswer, FrameSink, InterfaceState, VirtualInterface } from '../nic.ts'
import { performance } from '../performance.ts'
import { EAGAIN, EMSGSIZE, ENOBUFS, ENODEV, ENXIO, MSG_DONTWAIT } from '../posix/constants.ts'
import type { Libc } from '../posix/libc.ts'
import { clearTimeout, setTimeout } from '../real-time.ts'
import { BROKEN, CLOSED, NO_RESOURCE } from '../status.ts'
import { TwoSidedInterface, twoSidedCapabilities } from '../two-sided.ts'
import type { Device } from './device.ts'
import {
  AT_ETHERTYPE,
  AT_SOURCE,
  CONTENT_WORD,
  ETHERNET_AT,
  ETHERNET_SIZE,
  ETHERTYPE,
  frameMaxOf,
  HEADER_SIZE,
  ID_WORD,
  KIND_ANSWER,
  KIND_FRAME,
  KIND_HELLO,
  KIND_WORD,
  LENGTH_WORD,
  NONCE_WORD,
  padded,
  TAG_WORD,
} from './frame-layout.ts'
import { type FrameKey, tag, tagFrame } from './frame-tag.ts'
import type { PacketSocket } from './packet-socket.ts'
import { ReplayWindow } from './replay-window.ts'
import {
  FRAME_LENGTH_WORD,
  HELD_LENGTH_WORD,
  OFFSETS_WORD,
  STATUS_FILLED,
  STATUS_POSTED,
} from './ring-layout.ts'

const NO_BYTES = new Uint8Array(0)
const NO_WORDS = new Int32Array(0)
const NO_ONE_SIDED = 'an Ethernet device has no access to the memory of the peer'
/** Ours begins at a multiple of 16 in the send buffer. */
const HEADER_AT = ETHERNET_AT + ETHERNET_SIZE
const CONTENT_AT = HEADER_AT + HEADER_SIZE
/** A nonce beyond would not be a whole number any more. */
const NONCE_HIGH_MAX = 2 ** 21 - 1
const WORD_RANGE = 2 ** 32
/** Frames of a poll that are refused or belong to the connection itself, beyond its limit. */
const REFUSED_MAX = 64
/** Interval of attempts to send what an armed interface could not. */
const RETRY_MS = 1
const HELLO_MS_MIN = 1
const HELLO_MS_MAX = 50
/** ANSWERs at the end of a meeting; one of them may be lost. */
const LAST_ANSWERS = 3

/** What the two sides know of each other. */
export interface Connected {
  readonly peerMac: Buffer
  readonly peerId: Buffer
  /** The smaller ones of both. */
  readonly mtu: number
  readonly receiveDescriptors: number
  readonly sendKey: FrameKey
  readonly receiveKey: FrameKey
}

export class EthernetInterface extends TwoSidedInterface implements VirtualInterface {
  readonly driver = 'ethernet'
  readonly capabilities: Capabilities
  state: InterfaceState = 'open'
  failure: NicError | undefined
  /** Frames with a wrong tag, or none of the protocol; frames that had come before. */
  refused = 0
  replayed = 0
  readonly #libc: Libc
  readonly #socket: PacketSocket
  readonly #device: Device
  readonly #sendKey: FrameKey
  readonly #receiveKey: FrameKey

  #out: Uint8Array
  #outWords: Int32Array
  /** The part of `#out` that goes over the wire. */
  readonly #wire: Uint8Array
  /** Bytes of a frame that the device had no room for; 0 almost always. */
  #pending = 0

  #in: Uint8Array
  #inWords: Int32Array
  readonly #slotWords: number
  readonly #slotsPerBlock: number
  readonly #blockWords: number
  readonly #blockCount: number
  /** The next slot that the kernel fills: its first word, and its place. */
  #slot = 0
  #slotInBlock = 0
  #block = 0
  readonly #replays = new ReplayWindow()
  #isPolling = false
  /** A frame of the peer has come, so it is there and its frames arrive. */
  #hasHeard = false
  /** The peer has said that ours arrive. */
  #isHeard = false

  #answer: DoorbellAnswer = () => {}
  #isArmed = false
  #isRef = false
  #retry: NodeJS.Timeout | undefined

  /** Owns `socket`. */
  constructor(libc: Libc, socket: PacketSocket, device: Device, connected: Connected) {
    super()
    const frameMax = frameMaxOf(connected.mtu)
    this.#libc = libc
    this.#socket = socket
    this.#device = device
    this.#sendKey = connected.sendKey
    this.#receiveKey = connected.receiveKey
    this.capabilities = {
      ordered: false,
      reliable: false,
      isIntact: true,
      ...twoSidedCapabilities(frameMax, NO_ONE_SIDED),
      receiveDescriptors: connected.receiveDescriptors,
    }
    this.#out = new Uint8Array(CONTENT_AT + frameMax)
    this.#outWords = new Int32Array(this.#out.buffer)
    this.#wire = this.#out.subarray(ETHERNET_AT)
    this.#wire.set(connected.peerMac)
    this.#wire.set(device.mac, AT_SOURCE)
    new DataView(this.#out.buffer).setUint16(ETHERNET_AT + AT_ETHERTYPE, ETHERTYPE)
    this.#out.set(connected.peerId, HEADER_AT + 4 * ID_WORD)
    this.#in = new Uint8Array(socket.memory)
    this.#inWords = new Int32Array(socket.memory)
    const { slotSize, slotsPerBlock, blockSize, blockCount } = socket.shape
    this.#slotWords = slotSize >> 2
    this.#slotsPerBlock = slotsPerBlock
    this.#blockWords = blockSize >> 2
    this.#blockCount = blockCount
  }

  get sendBytes(): Uint8Array {
    return this.#out
  }

  get sendWords(): Int32Array {
    return this.#outWords
  }

  get receiveWords(): Int32Array {
    return this.#inWords
  }

  /**
   * Says HELLO until a frame of the peer has come. Rejects with `ERR_NIC_CONNECT_FAILED` after `timeoutMs`. Nothing may be
   * polled meanwhile.
   */
  async meet(timeoutMs: number): Promise<void> {
    const deadlineMs = performance.now() + timeoutMs
    let waitMs = HELLO_MS_MIN
    while (!this.#isMet()) {
      if (this.state !== 'open') throw new NicError('ERR_NIC_CONNECT_FAILED', 'the interface was closed')
      if (performance.now() >= deadlineMs) throw this.#unheard(timeoutMs)
      this.#send(KIND_HELLO, this.capabilities.frameMax)
      await new Promise<void>(resolve => setTimeout(resolve, waitMs))
      waitMs = Math.min(2 * waitMs, HELLO_MS_MAX)
    }
    // The peer may still wait for one, and this side answers nothing before its owner polls.
    for (let count = 0; count < LAST_ANSWERS && this.hasRoom(0); count++) this.#send(KIND_ANSWER, 0)
  }

  reserve(length: number): number {
    const { frameMax } = this.capabilities
    if (length > frameMax) throw new RangeError(`a frame of ${length} bytes; ${frameMax} is the most`)
    if (this.hasRoom(length)) return CONTENT_AT
    return this.state === 'open' ? NO_RESOURCE : this.#refusal()
  }

  commit(length: number): void {
    if (this.state === 'open') this.#send(KIND_FRAME, length)
  }

  /** `reserve` changes nothing that a later one would see. */
  cancel(): void {}

  hasRoom(_length: number): boolean {
    if (this.state !== 'open') return false
    return this.#pending === 0 || this.#flush()
  }

  poll(sink: FrameSink, limit: number): number {
    if (this.state !== 'open') return this.#refusal()
    if (this.#isPolling) throw new NicError('ERR_NIC_ARGUMENT', 'poll was called from within a sink')
    if (this.#pending > 0) this.#flush()
    let count = 0
    let refused = 0
    const words = this.#inWords
    this.#isPolling = true
    try {
      while (count < limit && refused < REFUSED_MAX && this.state === 'open') {
        const slot = this.#slot
        if ((atomics.load(words, slot) & STATUS_FILLED) === 0) break
        this.#advance()
        try {
          const kind = this.#check(slot)
          if (kind === KIND_FRAME) {
            count++
            const head = this.#headerOf(slot)
            sink.handleFrame(this.#in, (head + CONTENT_WORD) << 2, words[head + LENGTH_WORD] as number)
          } else {
            refused++
            this.#handleGreeting(kind)
          }
        } finally {
          // Posts the receive again. A sink may have closed the interface: then the memory is not ours any more.
          if ((this.state as InterfaceState) !== 'closed') atomics.store(words, slot, STATUS_POSTED)
        }
      }
    } finally {
      this.#isPolling = false
    }
    return count === 0 && (this.state as InterfaceState) === 'broken' ? BROKEN : count
  }

  get frameWord(): number {
    return this.state === 'open' ? this.#slot : -1
  }

  arm(forRoom: number): boolean {
    if (this.state !== 'open' || this.#isPolling) return false
    if (this.#isFrameNext() || (forRoom > 0 && this.hasRoom(forRoom))) return false
    this.#isArmed = true
    this.#socket.watch(this.#handleReadable, this.#isRef)
    this.#retryLater()
    return true
  }

  disarm(): void {
    if (!this.#isArmed) return
    this.#isArmed = false
    this.#socket.hush()
    clearTimeout(this.#retry)
    this.#retry = undefined
  }

  setDoorbell(listener: DoorbellAnswer): void {
    this.#answer = listener
  }

  ref(): void {
    this.#isRef = true
    if (this.state === 'open' && this.#isArmed) this.#socket.ref()
  }

  unref(): void {
    this.#isRef = false
    if (this.state === 'open') this.#socket.unref()
  }

  /** Frames that the kernel has dropped since the last call because no receive was posted. */
  takeDrops(): number {
    return this.state === 'open' ? this.#socket.takeDrops() : 0
  }

  close(): void {
    if (this.state === 'closed') return
    this.disarm()
    if (this.#pending > 0) this.#flush()
    this.state = 'closed'
    this.#answer = () => {}
    this.#out = NO_BYTES
    this.#outWords = NO_WORDS
    this.#in = NO_BYTES
    this.#inWords = NO_WORDS
    this.#socket.close()
  }

  readonly #handleReadable = (): void => {
    // Only a frame for the layer above wakes this side; greetings, frames of strangers, and the time in a worker do not.
    if (!this.#isArmed || ((!isMainThread || this.#isFilled()) && !this.#isFrameNext())) return
    this.disarm()
    this.#answer()
  }

  #isFilled(): boolean {
    return (atomics.load(this.#inWords, this.#slot) & STATUS_FILLED) !== 0
  }

  /** Whether each side's frames arrive at the other. The peer sends frames for the layer above once it has met us. */
  #isMet(): boolean {
    if (this.#isFrameNext()) this.#hasHeard = this.#isHeard = true
    return this.#hasHeard && this.#isHeard
  }

  /** Handles greetings, and drops up to `REFUSED_MAX` frames of strangers. True if a frame for the layer above is next. */
  #isFrameNext(): boolean {
    const words = this.#inWords
    for (let count = 0; count < REFUSED_MAX && this.state === 'open' && this.#isFilled(); count++) {
      const slot = this.#slot
      const head = this.#headerOf(slot)
      // A poll checks this one again.
      if (words[head + KIND_WORD] === KIND_FRAME && this.#isAuthentic(slot, head)) return true
      this.#advance()
      this.#handleGreeting(this.#check(slot))
      atomics.store(words, slot, STATUS_POSTED)
    }
    return false
  }

  #handleGreeting(kind: number): void {
    if (kind === KIND_HELLO) {
      this.#hasHeard = true
      // With a frame on its way to the device the peer asks again.
      if (this.hasRoom(0)) this.#send(KIND_ANSWER, 0)
    } else if (kind === KIND_ANSWER) this.#hasHeard = this.#isHeard = true
  }

  #headerOf(slot: number): number {
    return slot + ((this.#inWords[slot + OFFSETS_WORD] as number) >>> 18)
  }

  /** Hot. The kind of the frame in that slot; 0 if it must not count. Only the kernel has written it. */
  #check(slot: number): number {
    const words = this.#inWords
    const head = this.#headerOf(slot)
    if (!this.#isAuthentic(slot, head)) {
      this.refused++
      return 0
    }
    const nonce =
      (words[head + NONCE_WORD + 1] as number) * WORD_RANGE + ((words[head + NONCE_WORD] as number) >>> 0)
    if (this.#replays.accept(nonce)) return words[head + KIND_WORD] as number
    this.replayed++
    return 0
  }

  #isAuthentic(slot: number, head: number): boolean {
    const words = this.#inWords
    const held = words[slot + HELD_LENGTH_WORD] as number
    if (held !== words[slot + FRAME_LENGTH_WORD] || held < ETHERNET_SIZE + HEADER_SIZE) return false
    const length = words[head + LENGTH_WORD] as number
    if (length < 0 || length > this.capabilities.frameMax) return false
    const size = padded(length)
    const high = words[head + NONCE_WORD + 1] as number
    if (ETHERNET_SIZE + HEADER_SIZE + size > held || high < 0 || high > NONCE_HIGH_MAX) return false
    tagFrame(this.#receiveKey, words, head, size)
    return words[head + TAG_WORD] === tag[0] && words[head + TAG_WORD + 1] === tag[1]
  }

  #advance(): void {
    if (++this.#slotInBlock < this.#slotsPerBlock) {
      this.#slot += this.#slotWords
      return
    }
    this.#slotInBlock = 0
    this.#block = (this.#block + 1) % this.#blockCount
    this.#slot = this.#block * this.#blockWords
  }

  /** Hot. Completes the header of the frame in the send buffer, and sends it. */
  #send(kind: number, length: number): void {
    const words = this.#outWords
    const head = HEADER_AT >> 2
    const size = padded(length)
    for (let at = CONTENT_AT + length; at < CONTENT_AT + size; at++) this.#out[at] = 0
    const low = ((words[head + NONCE_WORD] as number) + 1) | 0
    words[head + NONCE_WORD] = low
    if (low === 0) words[head + NONCE_WORD + 1] = (words[head + NONCE_WORD + 1] as number) + 1
    words[head + LENGTH_WORD] = length
    words[head + KIND_WORD] = kind
    tagFrame(this.#sendKey, words, head, size)
    words[head + TAG_WORD] = tag[0] as number
    words[head + TAG_WORD + 1] = tag[1] as number
    this.#pending = ETHERNET_SIZE + HEADER_SIZE + size
    this.#flush()
  }

  /** False if the device still has no room. */
  #flush(): boolean {
    if (this.#libc.send(this.#socket.fd, this.#wire, this.#pending, MSG_DONTWAIT) < 0) {
      const errno = this.#libc.errno()
      if (errno === EAGAIN || errno === ENOBUFS) return false
      if (errno === EMSGSIZE || errno === ENODEV || errno === ENXIO) this.#break(errno)
      // Without a carrier the frame is lost, as on any network.
    }
    this.#pending = 0
    return this.state === 'open'
  }

  /** While the interface sleeps nothing else would send what the device had no room for. */
  #retryLater(): void {
    if (this.#pending === 0 || this.#retry !== undefined) return
    this.#retry = setTimeout(() => {
      this.#retry = undefined
      if (!this.#isArmed || this.state !== 'open') return
      if (!this.#flush()) return this.#retryLater()
      this.disarm()
      this.#answer()
    }, RETRY_MS)
    this.#retry.unref()
  }

  #break(errno: number): void {
    if (this.state !== 'open') return
    const { name } = this.#device
    this.state = 'broken'
    this.failure = new NicError(
      'ERR_NIC_DEVICE',
      errno === EMSGSIZE
        ? `the MTU of ${name} is smaller now than when the connection was made`
        : `the network device ${name} is gone (${this.#libc.errnoName(errno)})`,
      { syscall: 'send', errno },
    )
  }

  #unheard(timeoutMs: number): NicError {
    const { name } = this.#device
    const size = ETHERNET_SIZE + HEADER_SIZE + this.capabilities.frameMax
    const what = this.#hasHeard ? 'reached the peer' : 'of the peer arrived'
    return new NicError(
      'ERR_NIC_CONNECT_FAILED',
      `no frame of ${size} bytes ${what} within ${timeoutMs} ms at ${name}: something between the two forwards no EtherType 0x${ETHERTYPE.toString(16)}, or no frames so long`,
    )
  }

  #refusal(): typeof BROKEN | typeof CLOSED {
    return this.state === 'broken' ? BROKEN : CLOSED
  }
}
