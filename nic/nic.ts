/**
 * The driver contract: what every user-level NIC looks like to the layers above.
 *
 * A driver gives *virtual interfaces* (VIA's word; verbs calls them queue pairs): a send queue and a receive queue,
 * connected to exactly one peer. Frames are built in place and delivered in place; nothing is allocated per frame.
 * The layers above see this file and the capabilities, never a driver.
 *
 * Sources: Virtual Interface Architecture (sockets and RPC over VI, 1999, sections 2 and 3); Active Messages 2 for the
 * negotiated frame.
 */
import type { NicError } from './errors.ts'
import type { Status } from './status.ts'

/** What a virtual interface can do. Data, not behaviour: the conformance suite tests each claim. */
export interface Capabilities {
  /** Frames arrive in the order in which they were committed. */
  readonly ordered: boolean
  /** Every committed frame arrives exactly once while the peer lives. */
  readonly reliable: boolean
  /** Largest frame in bytes. */
  readonly frameMax: number
  /** Frames up to this many bytes need no memory but the queue itself. */
  readonly inlineMax: number
  /** One-sided access to memory that the peer has registered. */
  readonly rdmaRead: boolean
  readonly rdmaWrite: boolean
  /** Why one-sided access is missing, when it is. */
  readonly rdmaReason: string | undefined
  /** An armed interface wakes its owner through a file descriptor that the event loop watches. */
  readonly wakeFd: boolean
}

/** Receives the frames of one `poll`. An object and not a closure, so that the call site stays monomorphic. */
export interface FrameSink {
  /**
   * One frame, which lies in `bytes[offset … offset + length)`. `offset` is a multiple of 8. The memory is the queue's
   * own and valid only during the call; the peer may still write to it, so copy what you decide on before you decide.
   */
  handleFrame(bytes: Uint8Array, offset: number, length: number): void
}

/** Receives the completions of one `pollCompletions`. */
export interface CompletionSink {
  handleCompletion(workId: number, status: Status): void
}

export interface Access {
  readonly remoteRead: boolean
  readonly remoteWrite: boolean
  /** The same memory will not be registered again: nothing is to be kept for the next time. */
  readonly isOnce?: boolean
  /** The peer's access may have to end before the peer knows: `register` throws if that cannot be had. */
  readonly isRevocable?: boolean
}

/** Local memory that the NIC knows. The memory stays registered, and referenced, until `deregister`. */
export interface Registration {
  readonly bytes: Uint8Array
  readonly access: Access
  /** Opaque; give it to the peer, which turns it into a `RemoteMemory` with `importKey`. */
  readonly key: Uint8Array
  /**
   * Ends the peer's access now: what it tries later completes as `BROKEN`. False if that cannot be had without harm to the
   * connection; only for what was registered as revocable. `deregister` must follow.
   */
  revoke(): boolean
  deregister(): void
}

/** The peer's registered memory, as this side may name it. */
export interface RemoteMemory {
  readonly length: number
  readonly access: Access
}

export type InterfaceState = 'open' | 'closed' | 'broken'

/** `isIo`: the event loop calls as it calls for I/O, with no program below. Missing where the driver cannot tell. */
export type DoorbellAnswer = (isIo?: boolean) => void

export interface VirtualInterface {
  readonly driver: string
  readonly capabilities: Capabilities
  readonly state: InterfaceState
  /** What the peer did wrong, once `state` is `broken`. */
  readonly failure: NicError | undefined

  /** The send queue's memory, in which `reserve` gives places, as bytes and as 32-bit words. */
  readonly sendBytes: Uint8Array
  readonly sendWords: Int32Array
  /** The receive queue's memory as words, for the offsets that `handleFrame` is given. */
  readonly receiveWords: Int32Array

  /**
   * Reserves room for one frame of up to `length` bytes and returns its offset in `sendBytes`, a multiple of 8; or a
   * negative `Status`. Exactly one `commit` or `cancel` must follow before the next `reserve`. Allocates nothing.
   */
  reserve(length: number): number
  /** Sends the first `length` bytes of the reserved frame, and wakes the peer if it sleeps. */
  commit(length: number): void
  /** Gives the reserved room back without sending. */
  cancel(): void
  /** Whether a frame of `length` bytes could be reserved now. */
  hasRoom(length: number): boolean

  /**
   * What finds no room in the send queue goes from now on to memory that the peer holds, too, as long as there is any: for owners
   * that bound by themselves what is under way. Missing where there is no such memory.
   */
  useOverflow?(): void

  /**
   * Hands up to `limit` frames to `sink` and returns how many, or `BROKEN`. Never waits. May leave frames for the next poll.
   * What `sink` throws passes through, after the frame is accounted for. Must not be called from within a sink.
   */
  poll(sink: FrameSink, limit: number): number
  /**
   * Whether the memory shows a frame to `poll`, for who wants to wait in place; to ask costs less than a poll. Missing where only
   * a poll can tell, and where nothing can come while this thread waits.
   */
  hasFrame?(): boolean
  /**
   * One int32 of this side's program that the peer's can look at any time, by `shownWord`, though it may have frames before it
   * that it has not polled: what was shown before a frame was committed, or before anything else, is seen after it. 0 at first.
   * Missing where no memory is shared.
   */
  showWord?(word: number): void
  /** What the peer shows: any word at all. */
  readonly shownWord?: number | undefined
  /**
   * The peer is gone, and what it had sent is polled for the last time: no more than fits into the queue, whoever goes on
   * writing. Missing where the driver cannot tell.
   */
  expectEnd?(): void
  /**
   * Whether the kernel still connects the two sides, asked without the event loop. Undefined where the driver cannot tell: then
   * the layer above keeps a connection of its own, whose end is the peer's.
   */
  readonly hasPeer?: boolean | undefined
  /** Calls `listener` from the event loop when the peer's side has ended, however it went. Missing where `hasPeer` is. */
  watchPeer?(listener: () => void): void
  /** Marks, before `close`, that this side closes because of a fault: the peer reads it as `isCutOff` once this side has gone. */
  cutOff?(): void
  readonly isCutOff?: boolean | undefined

  /**
   * Asks to be woken by the next frame (and, with `forRoom`, when `forRoom` bytes of room have come back). Returns
   * false, and arms nothing, if that has already happened: then poll again instead of sleeping. Frames may be sent
   * while it is armed; they go out without a poll.
   */
  arm(forRoom: number): boolean
  disarm(): void
  /**
   * Called from the event loop after an armed interface was woken. One listener, told whether that is I/O; it may poll. It may also be called for
   * nothing, for the last time when the peer is gone.
   */
  setDoorbell(listener: DoorbellAnswer): void
  /** Whether the doorbell keeps the event loop alive, as long as there is somebody to ring it. It does not at first. */
  ref(): void
  unref(): void

  /** Throws `ERR_NIC_UNAVAILABLE` if the peer cannot be given that access to that memory. */
  register(bytes: Uint8Array, access: Access): Registration
  /**
   * Understands a key that the peer's `register` made; throws `ERR_NIC_ARGUMENT` on anything else, `ERR_NIC_UNAVAILABLE` if there
   * is no room for more of the peer's memory, `ERR_NIC_PROTOCOL_VIOLATION` if the memory is not what the key says.
   */
  importKey(key: Uint8Array): RemoteMemory
  /** One-sided: moves bytes without the peer's program. The completion carries `workId`. Both memories must stay. */
  rdmaRead(
    local: Registration,
    localOffset: number,
    remote: RemoteMemory,
    remoteOffset: number,
    length: number,
    workId: number,
  ): Status
  rdmaWrite(
    local: Registration,
    localOffset: number,
    remote: RemoteMemory,
    remoteOffset: number,
    length: number,
    workId: number,
  ): Status
  pollCompletions(sink: CompletionSink, limit: number): number

  /** Releases everything. The peer's interface stays open: whoever connected the two has a channel to tell it. */
  close(): void
}

export type Availability =
  | { readonly usable: true }
  | { readonly usable: false; readonly code: string; readonly reason: string }

/** A place where one peer may connect; its `blob` goes to that peer by any road. */
export interface Offer {
  readonly blob: Uint8Array
  /** Resolves with this side's interface; rejects when the offer is cancelled or expires. */
  readonly accepted: Promise<VirtualInterface>
  cancel(): void
  /**
   * Takes what the connecting side gave to `ConnectOptions.reply`. Only for drivers whose offering side must know of the
   * other: where it is missing there is no reply.
   */
  answer?(reply: Uint8Array): void
}

/** What the two ends may do with memory beyond the queues, over drivers within a host; both ends must want it. */
export interface MemoryOptions {
  /** Memory of `allocate` that one end registers may be mapped by the other, with the rights of its registration. */
  readonly sharesMemory?: boolean
  /**
   * Each end may read and write the other's process where it has registered memory: only for processes of one effective
   * user. An end that reads waits for as long as the other's memory takes to come.
   */
  readonly readsPeer?: boolean
}

export interface OfferOptions extends MemoryOptions {
  /** Bytes of queue each way; a power of two. */
  readonly queueSize?: number
  /** Which user may take the offer; by default only the user of this process. */
  readonly allowUid?: (uid: number) => boolean
  /** How long the offer stands. */
  readonly timeoutMs?: number
}

export interface ConnectOptions extends MemoryOptions {
  /** Most bytes of queue each way that an offer may have; the driver has a limit of its own, too. */
  readonly queueSizeMax?: number
  readonly allowUid?: (uid: number) => boolean
  readonly timeoutMs?: number
  /**
   * Called once, before `connect` resolves, by a driver whose offer has `answer`: the caller carries the bytes there by any
   * road. Without it only offers of this process can be taken up.
   */
  readonly reply?: (bytes: Uint8Array) => void
}

/** How far a driver's connections go: within one thread, one host and network namespace, or a network. */
export type Reach = 'thread' | 'host' | 'network'

/** What it takes to move a number of bytes to a peer, in microseconds of CPU time on both sides together. */
export interface CopyCosts {
  /** In frames: copied in, and copied out. */
  readonly twiceUs: number
  /** By one-sided access. */
  readonly onceUs: number
}

export interface Driver {
  readonly name: string
  readonly reach: Reach
  /** Measures both ways, if this can be done without a peer; for some ms. */
  readonly measureCosts?: (length: number) => CopyCosts | undefined
  /**
   * Zeros that peers may map if they are registered, and write if they `mayWrite`. It stays the program's for as long as anything
   * refers to it. Undefined where that cannot be had; missing where any memory will do.
   */
  readonly allocate?: (length: number, mayWrite: boolean) => Uint8Array | undefined
  availability(): Availability
  offer(options?: OfferOptions): Offer
  connect(blob: Uint8Array, options?: ConnectOptions): Promise<VirtualInterface>
}
