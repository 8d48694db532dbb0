/**
 * The driver contract: the interface that every user-level NIC offers to the layers above.
 *
 * A driver makes *virtual interfaces* (VIA's word; verbs calls them queue pairs): a send queue and a receive queue,
 * connected to exactly one peer. Frames are built in place and delivered in place; nothing is allocated per frame.
 * The layers above know this file and the capabilities, but no driver.
 *
 * Sources: Virtual Interface Architecture (sockets and RPC over VI, 1999, sections 2 and 3); Active Messages 2 for the
 * negotiated frame.
 */
import type { NicError } from './errors.ts'
import type { Status } from './status.ts'

/** The abilities of a virtual interface, as data. The conformance suite tests each claim. */
export interface Capabilities {
  /** Frames arrive in the order in which they were committed. */
  readonly ordered: boolean
  /** Every committed frame arrives exactly once while the peer lives. */
  readonly reliable: boolean
  /** A frame that arrives has the bytes that were committed: the layer above needs no checksum. */
  readonly isIntact?: boolean
  /** Largest frame in bytes. */
  readonly frameMax: number
  /** Frames up to this many bytes need no memory beyond the queue itself. */
  readonly inlineMax: number
  /** One-sided access to memory that the peer has registered. */
  readonly rdmaRead: boolean
  readonly rdmaWrite: boolean
  /** Why one-sided access is missing; undefined if it is not. */
  readonly rdmaReason: string | undefined
  /** The peer wakes an armed interface through a file descriptor that the event loop watches. */
  readonly wakeFd: boolean
  /**
   * Receive descriptors that each side has posted, in frames, for drivers that drop frames which find none. The layer
   * above keeps to half of them. Missing in drivers whose `hasRoom` tells.
   */
  readonly receiveDescriptors?: number
}

/** Receives the frames of one `poll`. An object and not a closure, so that the call site stays monomorphic. */
export interface FrameSink {
  /**
   * One frame in `bytes[offset … offset + length)`. `offset` is a multiple of 8. The memory belongs to the queue and is
   * valid only during the call. The peer may still write to it, so copy each value before you check and use it.
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
  /** The caller will not register this memory again: the driver need not cache the registration. */
  readonly isOnce?: boolean
  /** The owner may `revoke` the peer's access at any time. `register` throws if the driver cannot provide that. */
  readonly isRevocable?: boolean
}

/** Local memory that the NIC knows. The memory stays registered, and referenced, until `deregister`. */
export interface Registration {
  readonly bytes: Uint8Array
  readonly access: Access
  /** Opaque. The peer turns it into a `RemoteMemory` with `importKey`. */
  readonly key: Uint8Array
  /**
   * Ends the peer's access now: the peer's later operations complete as `BROKEN`. Only for revocable registrations.
   * False if the driver cannot revoke without breaking the connection. `deregister` must follow.
   */
  revoke(): boolean
  deregister(): void
}

/** The peer's registered memory, as the target of one-sided operations of this side. */
export interface RemoteMemory {
  readonly length: number
  readonly access: Access
}

export type InterfaceState = 'open' | 'closed' | 'broken'

/**
 * `isIo`: the event loop makes this call for I/O, with no program on the stack. Undefined if the driver cannot tell.
 */
export type DoorbellAnswer = (isIo?: boolean) => void

export interface VirtualInterface {
  readonly driver: string
  readonly capabilities: Capabilities
  readonly state: InterfaceState
  /** The reason, once `state` is `broken`. */
  readonly failure: NicError | undefined

  /** The send queue's memory, to which offsets of `reserve` refer, as bytes and as 32-bit words. */
  readonly sendBytes: Uint8Array
  readonly sendWords: Int32Array
  /** The receive queue's memory as 32-bit words, to which offsets of `handleFrame` refer. */
  readonly receiveWords: Int32Array

  /**
   * Reserves room for one frame of up to `length` bytes and returns its offset in `sendBytes`, a multiple of 8; or a
   * negative `Status`. Exactly one `commit` or `cancel` must follow before the next `reserve`. Allocates nothing.
   */
  reserve(length: number): number
  /** Sends the first `length` bytes of the reserved frame, and wakes the peer if it sleeps. */
  commit(length: number): void
  /**
   * Sends the first `headLength` bytes of the reserved frame, and `bytes[from … from + length)` behind them without a copy in
   * the queue; the caller may reuse its memory on return. Missing in drivers whose frames go from the queue's memory only.
   */
  commitFrom?(headLength: number, bytes: Uint8Array, from: number, length: number): void
  /** Releases the reserved room without sending. */
  cancel(): void
  /** Whether `reserve(length)` would succeed now. */
  hasRoom(length: number): boolean

  /**
   * From now on frames that find no room in the send queue go to an overflow ring while that has room. For owners
   * that limit by themselves how many bytes are under way. Missing in drivers without overflow memory.
   */
  useOverflow?(): void

  /**
   * Hands up to `limit` frames to `sink` and returns their number, or `BROKEN`. Never waits. May leave frames for the
   * next poll. An exception of `sink` passes through, and its frame counts as delivered. Must not be called from
   * within a sink.
   */
  poll(sink: FrameSink, limit: number): number
  /**
   * Index in `receiveWords` of the word that becomes other than 0 when the next frame has arrived, for callers that spin on
   * it; -1 if none can arrive. Valid until the next poll. Missing in drivers where only a poll can tell, and where no frame
   * can arrive while this thread spins.
   */
  readonly frameWord?: number
  /**
   * Publishes one int32, which the peer reads as `shownWord` at any time, even with unpolled frames in its queue. A
   * peer that has polled a frame sees the word that was published before its commit, or a later one. 0 at first.
   * Missing in drivers without shared memory.
   */
  showWord?(word: number): void
  /** The word that the peer published last. Not validated. */
  readonly shownWord?: number | undefined
  /**
   * The peer has gone: from now on polls deliver no more than its queue can hold, even if another process goes on
   * writing. Missing in drivers without such a limit.
   */
  expectEnd?(): void
  /**
   * Whether the kernel still connects both sides, asked without the event loop. Undefined in drivers that cannot
   * tell: the layer above then keeps a lifeline of its own to the peer.
   */
  readonly hasPeer?: boolean | undefined
  /** Calls `listener` from the event loop when the peer's side has ended for any reason. Missing if `hasPeer` is. */
  watchPeer?(listener: () => void): void
  /**
   * Call before `close` to mark that this side closes because of a fault. The peer reads `isCutOff` after this side
   * has gone.
   */
  cutOff?(): void
  readonly isCutOff?: boolean | undefined

  /**
   * Asks for a wake-up by the next frame and, if `forRoom` is not 0, when there is room for a frame of `forRoom`
   * bytes. Returns false, and arms nothing, if that has already happened: poll again instead of sleeping. An armed
   * interface may send; its frames go out without a poll.
   */
  arm(forRoom: number): boolean
  disarm(): void
  /**
   * Calls `listener` from the event loop after an armed interface was woken. Replaces an earlier listener. The
   * listener may poll. Spurious calls occur; the last call comes when the peer has gone.
   */
  setDoorbell(listener: DoorbellAnswer): void
  /** Makes the doorbell keep the event loop alive while the peer is connected. At first it does not. */
  ref(): void
  unref(): void

  /** Throws `ERR_NIC_UNAVAILABLE` if the driver cannot give the peer this access to this memory. */
  register(bytes: Uint8Array, access: Access): Registration
  /**
   * Decodes a key that the peer's `register` made. Throws `ERR_NIC_ARGUMENT` for any other bytes,
   * `ERR_NIC_UNAVAILABLE` if a limit of mapped peer memory is reached, `ERR_NIC_PROTOCOL_VIOLATION` if the memory
   * contradicts the key.
   */
  importKey(key: Uint8Array): RemoteMemory
  /**
   * One-sided: moves bytes without the peer's program. The completion carries `workId`. Both memories must stay
   * registered until then.
   */
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

  /** Releases all resources. Does not close the peer's interface: the layer above informs the peer. */
  close(): void
}

export type Availability =
  | { readonly usable: true }
  | { readonly usable: false; readonly code: string; readonly reason: string }

/** A place where one peer may connect. The caller carries `blob` to that peer by any means. */
export interface Offer {
  readonly blob: Uint8Array
  /** Resolves with this side's interface; rejects when the offer is cancelled or expires. */
  readonly accepted: Promise<VirtualInterface>
  cancel(): void
  /**
   * Accepts the bytes that the connecting side passed to `ConnectOptions.reply`. Missing in drivers whose offering
   * side needs no reply.
   */
  answer?(reply: Uint8Array): void
}

/** Access to memory beyond the queues, in drivers within a host. Holds only if both ends ask for it. */
export interface MemoryOptions {
  /** Each end may map memory of `allocate` that the other end registers, with the rights of its registration. */
  readonly sharesMemory?: boolean
  /**
   * Each end may read and write registered memory in the other's process. Only for processes of one effective user. A
   * read blocks this thread until the kernel has paged in the other's memory.
   */
  readonly readsPeer?: boolean
}

/** Addresses of the connection over which the two sides exchange blob and reply. */
export interface NetworkPath {
  /** Of this host. */
  readonly own: string
  readonly peer: string
}

export interface OfferOptions extends MemoryOptions {
  /** Queue size of each direction in bytes; a power of two. */
  readonly queueSize?: number
  /** True for users that may connect; by default only the user of this process. */
  readonly allowUid?: (uid: number) => boolean
  /** The offer expires after so long. */
  readonly timeoutMs?: number
  /** The connecting side is in another network namespace of this host, and has this process's rendezvous folder. */
  readonly isThroughFolder?: boolean
  /** The connecting side knows an address at which this process listens (`ConnectOptions.address`). */
  readonly hasAddress?: boolean
  /** Undefined within a host. */
  readonly path?: NetworkPath
  /** For drivers between hosts that probe: a host that is silent for so long counts as dead. */
  readonly peerTimeoutMs?: number
}

export interface NetworkAddress {
  readonly host: string
  readonly port: number
}

export interface ConnectOptions extends MemoryOptions {
  /** Largest accepted queue size of each direction, in bytes. The driver has its own limit, too. */
  readonly queueSizeMax?: number
  /** The offer was made with `isThroughFolder`. */
  readonly isThroughFolder?: boolean
  readonly allowUid?: (uid: number) => boolean
  readonly timeoutMs?: number
  /**
   * A driver whose offers have `answer` calls this once, before `connect` resolves. The caller carries the bytes to the
   * offering side by any means. Without `reply` such a driver connects only to offers of this process.
   */
  readonly reply?: (bytes: Uint8Array) => void
  /** Where the caller has reached the offering process, for offers with `hasAddress`. */
  readonly address?: NetworkAddress
  /** Undefined within a host. */
  readonly path?: NetworkPath
  readonly peerTimeoutMs?: number
}

/** Where a driver's peers may be: in the same thread, on the same host, or in the network. */
export type Reach = 'thread' | 'host' | 'network'

/** The cost of moving a number of bytes to a peer, in microseconds of CPU time of both sides together. */
export interface CopyCosts {
  /** In frames: copied into the ring, and out of it. */
  readonly twiceUs: number
  /** By one-sided access. */
  readonly onceUs: number
}

export interface Driver {
  readonly name: string
  readonly reach: Reach
  /** Another host is reached only at an address at which its process listens (`OfferOptions.hasAddress`). */
  readonly needsAddress?: boolean
  /** Measures both ways without a peer; takes some milliseconds. Missing or undefined if the driver cannot. */
  readonly measureCosts?: (length: number) => CopyCosts | undefined
  /**
   * Zeroed memory that peers may map after it is registered, and write if they `mayWrite`. The memory lives as long
   * as its ArrayBuffer is referenced. Undefined if the system refuses; missing in drivers that can register any
   * memory.
   */
  readonly allocate?: (length: number, mayWrite: boolean) => Uint8Array | undefined
  availability(): Availability
  offer(options?: OfferOptions): Offer
  connect(blob: Uint8Array, options?: ConnectOptions): Promise<VirtualInterface>
}
