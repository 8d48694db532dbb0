/** One end of a connection between two RDMA devices: the contract of nic.ts over a queue pair (frame-layout.ts). */
import { NicError } from '../errors.ts'
import type { CompletionSink, FrameSink, InterfaceState, VirtualInterface } from '../nic.ts'
import { clearTimeout, setTimeout } from '../real-time.ts'
import { BROKEN, CLOSED } from '../status.ts'
import type { EndAddress } from './address-layout.ts'
import {
  KIND_BYE,
  KIND_CREDIT,
  KIND_FRAME,
  KIND_HELLO,
  KIND_SHIFT,
  KIND_WANT,
  swapBytes,
  VALUE_MASK,
} from './frame-layout.ts'
import { WC_FLUSHED, WC_RETRY_EXCEEDED, WC_RNR_RETRY_EXCEEDED, WC_SUCCESS } from './library-layout.ts'
import { QueueInterface } from './queue-interface.ts'
import { BATCH } from './verbs-adapter.ts'
import type { Way, WayUser } from './way.ts'
import {
  WORK_BYE,
  WORK_HELLO,
  WORK_NOTICE,
  WORK_ONE_SIDED,
  WORK_RECEIVE,
  WORK_SEND,
} from './work-identity.ts'

/** Most time that a closed connection waits for frames under way: the peer may be gone. */
const LINGER_MS_MAX = 1000
/** See `#nudge`. */
const NUDGE_MS = 20
/** Batches of completions that one poll takes at most. */
const POLL_BATCHES_MAX = 64
/** No control word is awaited. */
const NOTHING = -1

export class VerbsInterface extends QueueInterface implements VirtualInterface, WayUser {
  readonly driver = 'verbs'
  failure: NicError | undefined
  #handshake: ((error: NicError | undefined) => void) | undefined
  #listener: (() => void) | undefined
  #isArmed = false
  #isRinging = false
  /** Bytes of room that the doorbell waits for; 0 is none. */
  #roomWanted = 0
  #isWantOut = false
  /** Room that the peer waits for, in bytes of the ring, or NOTHING. */
  #peerWants = NOTHING
  #linger: NodeJS.Timeout | undefined
  /** Present where a connection manager makes the connection. */
  #way: Way | undefined
  /** The peer, which has called, sends the first word. */
  #answersHello = false

  /** With a connection manager: a peer that knows the nonce may call now. */
  expect(nonce: Buffer): void {
    this.#way ??= this.adapter.manager?.expect(nonce, this.qp.number, this)
  }

  /** This end's values for the peer. */
  addressFor(nonce: Buffer, psn: number): EndAddress {
    const { gid, lid, mtu, linkLayer } = this.adapter.port
    const { ringSize, address, incoming } = this.slab
    return {
      nonce,
      number: this.qp.number,
      // The port to call, with a connection manager.
      psn: this.#way === undefined ? psn : (this.adapter.manager?.port ?? psn),
      gid,
      lid,
      mtu,
      linkLayer,
      ringSize,
      receives: this.receives.count,
      rkey: incoming.rkey,
      address,
    }
  }

  /**
   * Connects, and calls `done` from the event loop once a word of the offering side has reached the connecting side.
   */
  connect(
    own: EndAddress,
    peer: EndAddress,
    isOffering: boolean,
    done: (error: NicError | undefined) => void,
  ): void {
    const { manager } = this.adapter
    if (manager === undefined) this.qp.connect(own, peer)
    this.sends.connect(peer)
    this.#handshake = done
    this.attend()
    this.ref()
    if (manager === undefined) {
      if (isOffering) this.#control(KIND_HELLO, 0, WORK_HELLO)
    } else if (isOffering) {
      this.#answersHello = true
      this.expect(own.nonce)
      this.#way?.accept()
    } else {
      this.#way = manager.call(peer.gid, peer.psn, peer.nonce, this.qp.number, this)
    }
    this.adapter.pollAll()
  }

  /** The caller sends first: an iWARP acceptor must not send before it has received. */
  handleWayOpen(): void {
    if (this.state === 'closed') this.adapter.wake(this)
    else if (this.#control(KIND_HELLO, 0, WORK_SEND)) this.#nudge()
  }

  handleWayFailed(reason: string): void {
    if (this.state === 'closed') this.adapter.wake(this)
    else this.#break(new NicError('ERR_NIC_CONNECT_FAILED', reason))
  }

  handleWayClosed(): void {
    // The peer's BYE may not have been polled yet.
    this.adapter.pollAll()
    if (this.state === 'closed') this.#endLinger()
    else if (!this.isPeerGone)
      this.#break(new NicError('ERR_NIC_PEER_LOST', 'the peer has ended the connection'))
  }

  /**
   * The kernel's software iWARP device can overlook a message that arrives while it accepts: it finds the message when
   * the next one arrives.
   */
  #nudge(): void {
    const timer = setTimeout(() => {
      if (this.#handshake === undefined || this.state !== 'open') return
      const { released, renewed } = this.receives
      const errno = this.sends.writeCell(released, renewed) ?? 0
      if (errno !== 0) this.#failPost(errno)
      else this.#nudge()
    }, NUDGE_MS)
    timer.unref()
  }

  reserve(length: number): number {
    const offset = this.sends.reserve(length)
    return offset === BROKEN ? this.#violate(this.sends.violation) : offset
  }

  commit(length: number): void {
    const { released, renewed } = this.receives
    const errno = this.sends.commit(length, released, renewed)
    this.receives.noteReported()
    if (errno !== 0) this.#failPost(errno)
  }

  /** A reserved frame was not sent: nothing to undo. */
  cancel(): void {}

  hasRoom(length: number): boolean {
    return this.sends.hasRoom(length) || this.#noRoom()
  }

  poll(sink: FrameSink, limit: number): number {
    if (this.state === 'closed') return CLOSED
    if (this.receives.waiting === 0) {
      // Completions of other connections may come first, and one of them may never stop.
      for (let left = POLL_BATCHES_MAX; left > 0 && this.state === 'open'; left--)
        if (this.adapter.poll() < BATCH || this.receives.waiting > 0) break
      if (this.receives.waiting === 0) return this.#brokenOr(0)
    }
    try {
      return this.receives.poll(sink, limit)
    } finally {
      this.#reportRoom()
    }
  }

  arm(forRoom: number): boolean {
    if (this.state !== 'open' || this.receives.isPolling) return false
    this.attend()
    this.#isArmed = true
    this.#roomWanted = forRoom
    this.adapter.pollAll()
    if (this.#isReady()) {
      this.disarm()
      return false
    }
    if (forRoom > 0) this.#want()
    return true
  }

  disarm(): void {
    this.#isArmed = false
    this.#isRinging = false
    this.#roomWanted = 0
    if (this.#handshake === undefined && this.#linger === undefined) this.ignore()
  }

  setDoorbell(listener: () => void): void {
    this.#listener = listener
  }

  pollCompletions(sink: CompletionSink, limit: number): number {
    if (this.oneSided.underWay > 0 && this.state === 'open') this.adapter.poll()
    return this.oneSided.poll(sink, limit)
  }

  close(): void {
    if (this.state === 'closed') return
    const wasOpen = this.state === 'open' && !this.isPeerGone && this.#handshake === undefined
    this.disarm()
    this.unref()
    this.#handshake = undefined
    this.state = 'closed'
    this.#listener = undefined
    // BYE follows the frames; its acknowledgement is theirs, too.
    const isSent = wasOpen && this.#sendBye()
    this.sends.close()
    this.receives.close()
    if (!isSent) return this.adapter.wake(this)
    this.adapter.linger(this, true)
    this.ref()
    this.#linger = setTimeout(() => this.#dispose(), LINGER_MS_MAX)
    this.attend()
    this.adapter.pollAll()
  }

  handleCompletion(kind: number, low: number, status: number, immediate: number): void {
    if (kind === WORK_ONE_SIDED) this.oneSided.handleCompletion(status)
    if (status !== WC_SUCCESS) return this.#handleFailure(kind, status)
    if (kind === WORK_RECEIVE) {
      this.#handleReceived(swapBytes(immediate))
      if (this.#isArmed && this.#isReady()) this.#wakeUser()
      return
    }
    if (kind === WORK_NOTICE)
      return this.handleCompletion(WORK_RECEIVE, low, status, this.slab.notices[low] as number)
    this.sends.handleSent(low)
    if (kind === WORK_BYE) return this.#endLinger()
    if (kind === WORK_HELLO) return this.adapter.wake(this)
    // A sender may have waited for this place in the queue.
    this.#reportRoom()
    if (this.#roomWanted > 0 && this.#isReady()) this.#wakeUser()
    else if (kind === WORK_ONE_SIDED && this.#isArmed) this.#wakeUser()
    else if (this.#roomWanted > 0) this.#want()
  }

  handleDeviceLost(reason: string): void {
    this.#break(new NicError('ERR_NIC_UNAVAILABLE', reason))
  }

  /** Called from the event loop. */
  ring(): void {
    if (this.state === 'closed') {
      if (this.#linger === undefined) this.#dispose()
      return
    }
    const done = this.#handshake
    if (done !== undefined) {
      this.#handshake = undefined
      this.unref()
      if (!this.#isArmed) this.ignore()
      done(this.failure)
    }
    if (!this.#isRinging) return
    this.disarm()
    this.#listener?.()
  }

  /** Counts of sent and received frames, for a caller that holds both ends and must know when all have arrived. */
  progress(): { sent: number; arrived: number; reported: number; acknowledged: number; underWay: number } {
    this.adapter.pollAll()
    if (this.state === 'open') this.sends.readCell()
    return {
      sent: this.sends.sent,
      arrived: this.receives.arrived,
      reported: (this.receives.reportedReleased + this.receives.reportedRenewed) | 0,
      acknowledged: (this.sends.releasedSeen + this.sends.renewedSeen) | 0,
      underWay: this.oneSided.underWay,
    }
  }

  #handleReceived(word: number): void {
    const kind = word >>> KIND_SHIFT
    const value = word & VALUE_MASK
    if (kind === KIND_FRAME) {
      const at = this.receives.accept(value)
      if (this.state !== 'open') return
      if (at < 0) return void this.#violate(`a frame of ${value} bytes came where there is no room for it`)
      this.#handleCredits(this.receives.releasedBy(at), this.receives.renewedBy(at))
      return
    }
    this.receives.acceptControl()
    if (this.state !== 'open' || this.#failReceives()) return
    this.#noRoomAfterReadingCell()
    if (kind === KIND_WANT) {
      this.#peerWants = value
      this.#reportRoom()
    } else if (kind === KIND_CREDIT) {
      this.#isWantOut = false
      if (this.#isArmed && this.#roomWanted > 0 && !this.#isReady()) this.#want()
    } else if (kind === KIND_HELLO) {
      if (this.#handshake === undefined) return
      if (!this.#answersHello) return this.adapter.wake(this)
      this.#answersHello = false
      this.#control(KIND_HELLO, 0, WORK_HELLO)
    } else if (kind === KIND_BYE) {
      this.#losePeer()
    } else {
      this.#violate(`a word of kind ${kind}`)
    }
  }

  /** The peer has sent BYE: its frames can still be polled, and frames to it have no effect. */
  #losePeer(): void {
    this.isPeerGone = true
    this.qp.mute()
    if (this.#isArmed) this.#wakeUser()
  }

  #handleCredits(released: number, renewed: number): void {
    if (!this.sends.handleCredits(released, renewed)) this.#violate(this.sends.violation)
  }

  #noRoomAfterReadingCell(): void {
    if (!this.sends.readCell()) this.#violate(this.sends.violation)
  }

  /** True if the awaited event has happened. */
  #isReady(): boolean {
    if (this.receives.waiting > 0) return true
    return this.#roomWanted > 0 && !this.isPeerGone && this.hasRoom(this.#roomWanted)
  }

  #want(): void {
    if (this.#isWantOut || this.isPeerGone || this.state !== 'open') return
    this.#isWantOut = this.#control(KIND_WANT, this.sends.bytesFor(this.#roomWanted), WORK_SEND)
  }

  /** Reports freed room: the room that the peer waits for, or much. */
  #reportRoom(): void {
    if (this.state !== 'open' || this.isPeerGone || this.#failReceives()) return
    if (this.#peerWants !== NOTHING && this.receives.hasRoom(this.#peerWants)) {
      if (this.#control(KIND_CREDIT, 0, WORK_SEND)) this.#peerWants = NOTHING
    } else if (this.receives.isReportDue) {
      const { released, renewed } = this.receives
      const errno = this.sends.writeCell(released, renewed)
      if (errno === 0) this.receives.noteReported()
      else if (errno !== undefined) this.#failPost(errno)
    }
  }

  /** False if it cannot be sent now: it is tried again after a completion. */
  #control(kind: number, value: number, work: number): boolean {
    const { released, renewed } = this.receives
    const errno = this.sends.writeControl(kind, value, released, renewed, work)
    if (errno === undefined) return false
    this.receives.noteReported()
    if (errno !== 0) this.#failPost(errno)
    return errno === 0
  }

  /** True if its completion proves that everything has arrived. */
  #sendBye(): boolean {
    if (this.adapter.manager === undefined) return this.#control(KIND_BYE, 0, WORK_BYE)
    return this.#control(KIND_BYE, 0, WORK_SEND) && this.sends.readBack()
  }

  #handleFailure(kind: number, status: number): void {
    if (kind === WORK_RECEIVE) this.receives.acceptFailure()
    if (this.state === 'closed' || kind === WORK_BYE) return this.#endLinger()
    if (this.isPeerGone) return
    if (status === WC_RETRY_EXCEEDED || status === WC_RNR_RETRY_EXCEEDED || status === WC_FLUSHED) {
      const text =
        status === WC_RNR_RETRY_EXCEEDED ? 'takes nothing any more' : 'does not acknowledge any more'
      return this.#break(new NicError('ERR_NIC_PEER_LOST', `the peer ${text}`))
    }
    this.#violate(`the device reports completion status ${status}`)
  }

  #failPost(errno: number): void {
    this.#break(this.qp.postError('ibv_post_send', errno))
  }

  /** True if receives that the peer counts on could not be posted. */
  #failReceives(): boolean {
    const { errno } = this.receives
    if (errno !== 0) this.#break(this.receives.postError())
    return errno !== 0
  }

  #noRoom(): false {
    if (this.sends.violation !== undefined) this.#violate(this.sends.violation)
    return false
  }

  #brokenOr(count: number): number {
    return (this.state as InterfaceState) === 'broken' ? BROKEN : count
  }

  #violate(what: string | undefined): typeof BROKEN {
    this.#break(new NicError('ERR_NIC_PROTOCOL_VIOLATION', `verbs: ${what ?? 'unusable'}`))
    return BROKEN
  }

  #break(error: NicError): void {
    if (this.state !== 'open') return
    this.state = 'broken'
    this.failure = error
    this.sends.fail(error.message)
    // Frames of a lost peer can still be polled; those of a peer that broke the protocol cannot.
    if (error.code === 'ERR_NIC_PROTOCOL_VIOLATION') this.receives.forget()
    this.qp.stop()
    if (this.#handshake !== undefined) this.adapter.wake(this)
    if (this.#isArmed) this.#wakeUser()
  }

  #wakeUser(): void {
    if (this.#isRinging) return
    this.#isRinging = true
    this.adapter.wake(this)
  }

  #endLinger(): void {
    if (this.#linger === undefined) return
    clearTimeout(this.#linger)
    this.#linger = undefined
    this.adapter.linger(this, false)
    this.adapter.wake(this)
  }

  #dispose(): void {
    clearTimeout(this.#linger)
    this.#linger = undefined
    this.adapter.linger(this, false)
    // Rings again when the result of the call is known.
    if (this.#way?.isCalling) return
    this.release()
    this.#way?.close()
    this.#way = undefined
  }
}
