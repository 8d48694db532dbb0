/** One end of a kernel TCP connection as the contract of nic.ts (frame-layout.ts). */
import { copyBytes } from '../copy.ts'
import { NicError } from '../errors.ts'
import type { Capabilities, DoorbellAnswer, FrameSink, InterfaceState, VirtualInterface } from '../nic.ts'
import { EHOSTDOWN, EHOSTUNREACH, ENETUNREACH, ETIMEDOUT } from '../posix/constants.ts'
import type { Libc } from '../posix/libc.ts'
import { clearTimeout, setTimeout } from '../real-time.ts'
import { frameMaxOf, POLL_BYTES_MAX } from '../ring/ring-layout.ts'
import { BROKEN, CLOSED, NO_RESOURCE } from '../status.ts'
import { TwoSidedInterface, twoSidedCapabilities } from '../two-sided.ts'
import {
  CONTROL_ROOM,
  CREDIT_STEPS,
  frameSize,
  HEADER_SIZE,
  KIND_BYE,
  KIND_CREDIT,
  KIND_FRAME,
  KIND_SHIFT,
  LENGTH_MASK,
  RECEIVE_SLACK,
} from './frame-layout.ts'
import { type Readable, type Readiness, readinessOf } from './readiness.ts'
import { type TcpWire, type WireOwner, WOULD_WAIT } from './tcp-wire.ts'

const NO_BYTES = new Uint8Array(0)
const NO_WORDS = new Int32Array(0)
/** Bytes of one recv(2): more than a core's cache holds would be read from memory again. */
const RECEIVE_MAX = 256 * 1024
/** So many bytes of a burst go to the kernel together: a system call a frame costs more than a short frame. */
const BURST_BYTES = 64 * 1024
/**
 * Frames in a receive buffer are moved to its start when less room than this is left behind them, or when what is handled
 * already is longer: memory that is used again at once stays in the core's cache.
 */
const ROOM_MIN = 64 * 1024
/** Interval of attempts to send what an armed interface could not. */
const RETRY_MS = 1
const NO_ONE_SIDED = "a kernel TCP connection has no access to the peer's memory"
/** What the kernel reports if it has given up a host that does not answer. */
const SILENT: readonly number[] = [ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, EHOSTDOWN]

export class TcpInterface extends TwoSidedInterface implements VirtualInterface, WireOwner, Readable {
  readonly driver = 'tcp'
  readonly capabilities: Capabilities
  state: InterfaceState = 'open'
  failure: NicError | undefined
  isReadable = true
  isHeld = false
  readonly #libc: Libc
  readonly #queueSize: number
  readonly #wire: TcpWire
  readonly #readiness: Readiness
  readonly #place: number
  #isWatched = true
  /** The latest look that this interface has seen. */
  #look = 0

  /** Committed frames in `[#from, #to)` have not gone to the kernel yet: few of a burst, or the kernel has no room. */
  #out: Uint8Array
  #outWords: Int32Array
  #from = 0
  #to = 0
  /** A frame has gone since the last poll. Those behind it wait for more, for a poll, or for the event loop. */
  #isBurst = false
  /** Free bytes of the window to the peer. */
  #window: number
  /** RELEASED of the peer's latest frame. */
  #peerReleased = 0
  /** Committed frames are dropped: the peer has closed, or the kernel has given the connection up. */
  #isMuted = false

  /** Received bytes in `[#at, #have)`: whole frames up to `#scanned`, behind it a part of one. */
  #in: Uint8Array
  #inWords: Int32Array
  #at = 0
  #scanned = 0
  #have = 0
  /** Free bytes of the peer's window to us: its frames that no poll has handled use it up. */
  #peerWindow: number
  #released = 0
  #reportedReleased = 0
  readonly #creditStep: number
  /** A poll runs, and a frame lies in front of its sink. */
  #isPolling = false
  #isDelivering = false
  /** The peer has said BYE. */
  #hasBye = false
  /** The stream is over: an errno, or 0 at its end. */
  #endErrno: number | undefined
  /** The layer above expects the end: so many bytes of frames are still delivered. */
  #isEndExpected = false
  #deliverLeft = 0

  #answer: DoorbellAnswer = () => {}
  #isArmed = false
  #roomWanted = 0
  #retry: NodeJS.Timeout | undefined

  /** Owns `wire`. `early`: bytes that arrived behind the handshake. */
  constructor(libc: Libc, wire: TcpWire, queueSize: number, early: Uint8Array) {
    super()
    this.#libc = libc
    this.#wire = wire
    const frameMax = frameMaxOf(queueSize)
    this.capabilities = {
      ordered: true,
      reliable: true,
      ...twoSidedCapabilities(frameMax, NO_ONE_SIDED),
    }
    this.#queueSize = queueSize
    this.#window = queueSize
    this.#peerWindow = queueSize
    this.#creditStep = queueSize / CREDIT_STEPS
    this.#out = new Uint8Array(queueSize + CONTROL_ROOM)
    this.#outWords = new Int32Array(this.#out.buffer)
    this.#in = new Uint8Array(queueSize + RECEIVE_SLACK)
    this.#inWords = new Int32Array(this.#in.buffer)
    this.#readiness = readinessOf(libc)
    this.#place = this.#readiness.join(wire.fd, this)
    wire.owner = this
    if (early.length > 0) this.#append(early, early.length)
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

  reserve(length: number): number {
    if (length > this.capabilities.frameMax)
      throw new RangeError(`a frame of ${length} bytes; ${this.capabilities.frameMax} is the most`)
    if (!this.hasRoom(length)) return this.state === 'open' ? NO_RESOURCE : this.#refusal()
    const size = frameSize(length)
    this.#rewind()
    if (this.#to + size > this.#out.length - CONTROL_ROOM) this.#compactOut()
    return this.#to + HEADER_SIZE
  }

  commit(length: number): void {
    if (this.state !== 'open') return
    this.#window -= frameSize(length)
    this.#put(KIND_FRAME, length)
    if (this.#isBurst && this.#to - this.#from < BURST_BYTES) return this.#readiness.hold(this)
    this.#isBurst = true
    this.#flush()
    if (this.#isArmed) this.#retryLater()
  }

  commitFrom(headLength: number, bytes: Uint8Array, from: number, length: number): void {
    if (this.state !== 'open') return
    const body = this.#to + HEADER_SIZE + headLength
    this.#window -= frameSize(headLength + length)
    this.#put(KIND_FRAME, headLength + length)
    this.#isBurst = true
    this.#flush(body)
    if (this.#from === body) this.#noteSent(this.#wire.send(bytes, from, from + length))
    // The caller may reuse its memory: what the kernel has no room for waits in the queue.
    const left = body + length - Math.max(body, this.#from)
    if (left > 0) copyBytes(bytes, from + length - left, this.#out, body + length - left, left)
    else this.#flush()
    if (this.#isArmed) this.#retryLater()
  }

  /** `reserve` changes nothing that a later one would see. */
  cancel(): void {}

  hasRoom(length: number): boolean {
    if (this.state !== 'open') return false
    const size = frameSize(length)
    if (size <= this.#window) return true
    this.endBurst()
    // The peer's CREDIT may have arrived.
    while (this.#endErrno === undefined && this.#receive()) if (size <= this.#window) return true
    return false
  }

  poll(sink: FrameSink, limit: number): number {
    if (this.state !== 'open') return this.#refusal()
    if (this.#isPolling) throw new NicError('ERR_NIC_ARGUMENT', 'poll was called from within a sink')
    this.endBurst()
    let count = 0
    let isMore = true
    const before = this.#released
    this.#isPolling = true
    try {
      while (isMore) {
        count += this.#deliver(sink, limit - count)
        const bytes = (this.#released - before) | 0
        isMore = count < limit && bytes < POLL_BYTES_MAX && this.state === 'open' && this.#hasBytes()
        if (isMore) isMore = this.#receive()
      }
    } finally {
      this.#isPolling = false
      this.endBurst()
      this.#reportRoom()
    }
    if (count === 0 && this.#endErrno !== undefined) this.#settleEnd()
    return count === 0 && (this.state as InterfaceState) === 'broken' ? BROKEN : count
  }

  endBurst(): void {
    this.#isBurst = false
    if (this.#from === this.#to) return
    this.#flush()
    if (this.#isArmed) this.#retryLater()
  }

  expectEnd(): void {
    if (this.#isEndExpected) return
    this.#isEndExpected = true
    this.#deliverLeft = this.#queueSize
  }

  arm(forRoom: number): boolean {
    if (this.state !== 'open' || this.#isPolling) return false
    this.endBurst()
    this.#readiness.look()
    while (this.isReadable && this.#endErrno === undefined && this.#receive());
    this.#reportRoom()
    if (this.#isReady(forRoom)) return false
    this.#isArmed = true
    this.#roomWanted = forRoom
    if (this.#endErrno === undefined) this.#wire.listen()
    this.#retryLater()
    return true
  }

  disarm(): void {
    if (!this.#isArmed) return
    this.#isArmed = false
    this.#roomWanted = 0
    this.#wire.hush()
    clearTimeout(this.#retry)
    this.#retry = undefined
  }

  setDoorbell(listener: DoorbellAnswer): void {
    this.#answer = listener
  }

  ref(): void {
    if (this.state === 'open') this.#wire.ref()
  }

  unref(): void {
    this.#wire.unref()
  }

  close(): void {
    if (this.state === 'closed') return
    this.disarm()
    this.#unwatch()
    this.#rewind()
    if (this.state === 'open') this.#put(KIND_BYE, 0)
    this.state = 'closed'
    this.#answer = () => {}
    this.#wire.close(this.#isMuted ? NO_BYTES : this.#out.subarray(this.#from, this.#to))
    this.#out = NO_BYTES
    this.#outWords = NO_WORDS
    this.#in = NO_BYTES
    this.#inWords = NO_WORDS
    this.#at = this.#scanned = this.#have = this.#from = this.#to = 0
  }

  /** Node has read in place of a poll, while the interface was armed. */
  handleRead(bytes: Uint8Array, length: number): void {
    this.#append(bytes, length)
    this.#ringIfReady()
  }

  handleOver(): void {
    if (this.state === 'closed') return
    this.#receive()
    this.#ringIfReady()
  }

  #ringIfReady(): void {
    if (!this.#isArmed || !this.#isReady(this.#roomWanted)) return
    this.disarm()
    this.#answer(true)
  }

  /** True if the event that an armed interface waits for has happened. */
  #isReady(forRoom: number): boolean {
    while (this.#at < this.#scanned && (this.#inWords[this.#at >> 2] as number) >>> KIND_SHIFT !== KIND_FRAME)
      this.#at += HEADER_SIZE
    if (this.#at < this.#scanned && !(this.#isEndExpected && this.#deliverLeft <= 0)) return true
    if (this.#endErrno !== undefined) this.#settleEnd()
    if ((this.state as InterfaceState) !== 'open') return true
    return forRoom > 0 && !this.#isMuted && frameSize(forRoom) <= this.#window
  }

  /** Hot. Whether the kernel may have bytes: interfaces that are polled in turn share one look. */
  #hasBytes(): boolean {
    if (this.#endErrno !== undefined) return false
    const readiness = this.#readiness
    if (!this.isReadable && (readiness.isStale || this.#look === readiness.looks)) readiness.look()
    this.#look = readiness.looks
    return this.isReadable
  }

  /** Hot. Hands up to `limit` frames that lie in the receive buffer to `sink`. */
  #deliver(sink: FrameSink, limit: number): number {
    let count = 0
    this.#isDelivering = true
    try {
      while (count < limit && this.#at < this.#scanned) {
        const at = this.#at
        const head = this.#inWords[at >> 2] as number
        const length = head & LENGTH_MASK
        const size = frameSize(length)
        if (this.#isEndExpected && !this.#mayStillDeliver(size)) break
        this.#at = at + size
        if (head >>> KIND_SHIFT !== KIND_FRAME) continue
        this.#released = (this.#released + size) | 0
        this.#peerWindow += size
        count++
        sink.handleFrame(this.#in, at + HEADER_SIZE, length)
      }
    } finally {
      this.#isDelivering = false
    }
    return count
  }

  #mayStillDeliver(size: number): boolean {
    this.#deliverLeft -= size
    return this.#deliverLeft >= 0
  }

  /** One recv(2); false if it brought nothing. */
  #receive(): boolean {
    const room = this.#roomToReceive()
    if (room === 0) return false
    const count = this.#wire.receive(this.#in, this.#have, room)
    this.isReadable = count === room
    if (count > 0) {
      this.#have += count
      this.#scan()
      return true
    }
    if (count !== WOULD_WAIT) this.#noteEnd(-count)
    return false
  }

  /** Appends bytes that were read in another way. They fit: the peer's window limits them. */
  #append(bytes: Uint8Array, length: number): void {
    let appended = 0
    while (appended < length && this.state === 'open') {
      const count = Math.min(length - appended, this.#roomToReceive())
      if (count === 0) return this.#violate('more bytes than its window and its credits need')
      this.#in.set(bytes.subarray(appended, appended + count), this.#have)
      this.#have += count
      appended += count
      this.#scan()
    }
  }

  #roomToReceive(): number {
    if (!this.#isDelivering) {
      if (this.#at === this.#have) this.#at = this.#scanned = this.#have = 0
      else if (this.#at > 0 && (this.#have < 2 * this.#at || this.#in.length - this.#have < ROOM_MIN)) {
        this.#in.copyWithin(0, this.#at, this.#have)
        this.#scanned -= this.#at
        this.#have -= this.#at
        this.#at = 0
      }
    }
    return Math.min(RECEIVE_MAX, this.#in.length - this.#have)
  }

  /** Checks the frames that have become complete, and adds the window that they release. */
  #scan(): void {
    const words = this.#inWords
    let at = this.#scanned
    while (this.#have - at >= HEADER_SIZE) {
      const head = words[at >> 2] as number
      const kind = head >>> KIND_SHIFT
      const length = head & LENGTH_MASK
      const isFrame = kind === KIND_FRAME && length <= this.capabilities.frameMax
      const isControl = (kind === KIND_CREDIT || kind === KIND_BYE) && length === 0
      if (this.#hasBye || (!isFrame && !isControl))
        return this.#violate(`a frame head of 0x${(head >>> 0).toString(16)}`)
      const size = frameSize(length)
      if (this.#have - at < size) break
      if (!this.#handleReleased(words[(at >> 2) + 1] as number))
        return this.#violate('more bytes handled than were sent')
      if (isFrame) this.#peerWindow -= size
      if (this.#peerWindow < 0) return this.#violate('more frames than its window holds')
      if (kind === KIND_BYE) this.#hasBye = this.#isMuted = true
      at += size
    }
    this.#scanned = at
  }

  #handleReleased(released: number): boolean {
    const more = (released - this.#peerReleased) | 0
    const window = this.#window + more
    if (more < 0 || window > this.#queueSize) return false
    this.#peerReleased = released
    this.#window = window
    return true
  }

  /** Puts a frame, whose content lies in place already, behind the others in the send buffer. */
  #put(kind: number, length: number): void {
    const at = this.#to >> 2
    this.#outWords[at] = (kind << KIND_SHIFT) | length
    this.#outWords[at + 1] = this.#released
    this.#reportedReleased = this.#released
    this.#to += frameSize(length)
  }

  /** Passes the send buffer, or its part before `to`, to the kernel, as far as the kernel accepts it. */
  #flush(to = this.#to): void {
    if (this.#from === to) return
    if (this.#isMuted) this.#from = this.#to
    else this.#noteSent(this.#wire.send(this.#out, this.#from, to, to < this.#to))
  }

  /** `count`: what the kernel has answered to a send. */
  #noteSent(count: number): void {
    this.#readiness.isStale = true
    if (count >= 0) this.#from += count
    else if (count !== WOULD_WAIT) {
      // The peer's last frames and its BYE, or the reason of the end, can still be read.
      this.#isMuted = this.isReadable = true
      this.#from = this.#to
    }
  }

  /** What was committed has gone: the next frame begins at the start of the buffer again. */
  #rewind(): void {
    if (this.#from === this.#to) this.#from = this.#to = 0
  }

  /** Moves what is left to the start of the buffer; frames stay on multiples of 8. */
  #compactOut(): void {
    const start = this.#from & 7
    this.#out.copyWithin(start, this.#from, this.#to)
    this.#to -= this.#from - start
    this.#from = start
  }

  /** Reports freed window to the peer once it is much, unless a frame has reported it. */
  #reportRoom(): void {
    const unreported = (this.#released - this.#reportedReleased) | 0
    if (unreported < this.#creditStep || this.#isMuted || this.state !== 'open') return
    // One CREDIT at most waits for the kernel: there is room for no more.
    if (this.#from < this.#to) return
    this.#rewind()
    this.#put(KIND_CREDIT, 0)
    this.#flush()
  }

  /** While the interface sleeps nothing else would send what the kernel has not accepted. */
  #retryLater(): void {
    if (this.#from === this.#to || this.#retry !== undefined) return
    this.#retry = setTimeout(() => {
      this.#retry = undefined
      this.#flush()
      this.#reportRoom()
      if (this.#isArmed) this.#retryLater()
    }, RETRY_MS)
    this.#retry.unref()
  }

  #noteEnd(errno: number): void {
    this.#endErrno = errno
    this.#isMuted = true
    this.#unwatch()
  }

  /** All frames have been delivered: an end without a goodbye breaks the interface. */
  #settleEnd(): void {
    if (this.#hasBye || this.state !== 'open') return
    const errno = this.#endErrno as number
    const isSilent = SILENT.includes(errno)
    const name = errno === 0 ? undefined : this.#libc.errnoName(errno)
    this.#break(
      isSilent
        ? new NicError('ERR_NIC_PEER_LOST', `the peer's host does not answer (${name})`, { errno })
        : new NicError(
            'ERR_NIC_PEER_RESET',
            name === undefined
              ? "the peer's process has ended without closing"
              : `the connection was reset (${name})`,
            { errno },
          ),
    )
  }

  #violate(what: string): void {
    this.#at = this.#scanned = this.#have
    this.#break(new NicError('ERR_NIC_PROTOCOL_VIOLATION', `tcp: the peer sent ${what}`))
  }

  #break(failure: NicError): void {
    if (this.state !== 'open') return
    this.state = 'broken'
    this.failure = failure
    this.#isMuted = true
    this.#unwatch()
  }

  #unwatch(): void {
    if (!this.#isWatched) return
    this.#isWatched = false
    this.#readiness.leave(this.#wire.fd, this.#place)
  }

  #refusal(): typeof BROKEN | typeof CLOSED {
    return this.state === 'broken' ? BROKEN : CLOSED
  }
}
