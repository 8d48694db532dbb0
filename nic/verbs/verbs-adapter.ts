/**
 * The RDMA device of this process: one context, protection domain, completion queue and completion channel for all
 * connections. A poll by any connection polls the completions of all. Each is dispatched to its connection, which
 * counts it; the user of that connection is notified at its own poll or doorbell.
 */
import { statSync } from 'node:fs'
import { NicError } from '../errors.ts'
import { performance } from '../performance.ts'
import { type PollHandle, systemError } from '../posix/libc.ts'
import { clearInterval, setImmediate, setInterval } from '../real-time.ts'
import type { ConnectionManager } from './connection-manager.ts'
import { newCounters, type VerbsCounters } from './counters.ts'
import { assertDescriptor, setNonBlocking } from './descriptors.ts'
import { chooseGid, type Port } from './device-choice.ts'
import { sharedDepthOf } from './device-limits.ts'
import { type DeviceObjects, destroyObjects, makeObjects } from './device-objects.ts'
import { userDeviceOf } from './kernel-devices.ts'
import {
  ACCESS_LOCAL_WRITE,
  ACCESS_REMOTE_WRITE,
  ASYNC_DEVICE_FATAL,
  ASYNC_GID_CHANGE,
  ASYNC_PORT,
  ASYNC_PORT_ERROR,
  ASYNC_QUEUE_ERROR,
  ASYNC_SHARED_QUEUE_ERROR,
  ASYNC_SIZE,
  ASYNC_TYPE,
  CONTEXT_ASYNC_FD,
  CONTEXT_COMMAND_FD,
  CONTEXT_FUNCTIONS,
  FUNCTION_POLL_CQ,
  FUNCTION_POST_RECV,
  FUNCTION_POST_SEND,
  FUNCTION_POST_SRQ_RECV,
  FUNCTION_REQ_NOTIFY_CQ,
  MR_ADDRESS,
  MR_LENGTH,
  MR_LKEY,
  MR_RKEY,
  WC_ID_HIGH_WORD,
  WC_ID_LOW_WORD,
  WC_IMM_WORD,
  WC_QP_NUMBER_WORD,
  WC_SIZE,
  WC_STATUS_WORD,
  WC_WORDS,
} from './library-layout.ts'
import { RegistrationCache } from './registration-cache.ts'
import { SharedReceives } from './shared-receives.ts'
import type { MemoryRegion, VerbsDevice } from './verbs-device.ts'
import type { DeviceFunctions, Pointer, VerbsLibrary } from './verbs-library.ts'
import { IDENTITY_KIND_SHIFT, SLOT_MASK, SLOT_SHARED } from './work-identity.ts'

/** Most completions of one poll; after so many there may be more. */
export const BATCH = 64
/** Depth of the completion queue at first; it grows with the connections. */
const COMPLETIONS_FIRST = 4096
/** The kernel's iWARP device cannot grow its queue. */
const COMPLETIONS_FIRST_IWARP = 32768
/** Interval of checks of a used device: some disappear without an event, and wait for their users. */
const PRESENCE_MS = 1000
/** Most time that the end of the process waits for frames under way. */
const EXIT_MS_MAX = 500

/** A connection, as the completion queue knows it. */
export interface CompletionOwner {
  /** `low` and the kind are the request's identity. Does not throw, and calls no user. */
  handleCompletion(kind: number, low: number, status: number, immediate: number): void
  /** The device can no longer be used. */
  handleDeviceLost(reason: string): void
  /** Called from the event loop after `wake`. */
  ring(): void
  close(): void
}

export class VerbsAdapter implements VerbsDevice {
  readonly verbs: VerbsLibrary
  readonly port: Port
  /** Of an iWARP device: makes the connections. Some operations differ where it is present. */
  readonly manager: ConnectionManager | undefined
  readonly functions: DeviceFunctions
  readonly pd: Pointer
  readonly cq: Pointer
  readonly counters: VerbsCounters = newCounters()
  /** Pinned for the rings of all connections. */
  slabBytes = 0
  /** Why the device can no longer be used, and since when. */
  lostReason: string | undefined
  lostAtMs = Number.POSITIVE_INFINITY
  /** The port has another address now: open connections go on, new ones need a new adapter. */
  isOutdated = false
  /** Everything was released; no function of the library may be called. */
  isClosed = false
  readonly cache = new RegistrationCache(this)
  readonly sharedReceives: SharedReceives
  readonly #context: Pointer
  readonly #asyncWatcher: PollHandle
  readonly #userDevice: string
  readonly #userDeviceNumber: number
  #presence: NodeJS.Timeout | undefined
  readonly #objects: DeviceObjects
  readonly #watcher: PollHandle
  readonly #batch = new Int32Array(new ArrayBuffer(BATCH * WC_SIZE))
  readonly #batchAt: Pointer
  /** Memory that the library writes when it reports an event; never read. */
  readonly #eventQueue = Buffer.alloc(8)
  readonly #eventOwner = Buffer.alloc(8)
  readonly #owners: (CompletionOwner | undefined)[] = []
  /** By queue pair: connections with receives of the shared queue. */
  readonly #sharers = new Map<number, CompletionOwner>()
  readonly #woken: CompletionOwner[] = []
  #isNotified = false
  #attentive = 0
  #references = 0
  #completionsMax: number
  #completionsPromised = 0
  #connections = 0
  readonly #lingering = new Set<CompletionOwner>()

  constructor(library: VerbsLibrary, context: Pointer, port: Port, manager?: ConnectionManager) {
    const { libc } = library
    this.verbs = library
    this.port = port
    this.manager = manager
    this.#completionsMax = manager === undefined ? COMPLETIONS_FIRST : COMPLETIONS_FIRST_IWARP
    this.#context = context
    this.#userDevice = userDeviceOf(port.device)
    this.#userDeviceNumber = numberOf(this.#userDevice)
    const commandFd = library.readUint32(context, CONTEXT_COMMAND_FD)
    const asyncFd = library.readUint32(context, CONTEXT_ASYNC_FD)
    assertDescriptor(commandFd, /uverbs/, 'ibv_context')
    assertDescriptor(asyncFd, /infinibandevent|uverbs/, 'ibv_context')
    const functionAt = (entry: number): Pointer => {
      const pointer = library.readPointer(context, CONTEXT_FUNCTIONS + 8 * entry)
      if (pointer === 0n) throw new NicError('ERR_NIC_UNAVAILABLE', `${port.device} lacks function ${entry}`)
      return pointer
    }
    this.functions = library.deviceFunctions(
      functionAt(FUNCTION_POLL_CQ),
      functionAt(FUNCTION_REQ_NOTIFY_CQ),
      functionAt(FUNCTION_POST_SEND),
      functionAt(FUNCTION_POST_RECV),
      functionAt(FUNCTION_POST_SRQ_RECV),
    )
    // The receives of an iWARP device have memory of their connection.
    const depth = manager === undefined ? sharedDepthOf(library, context, port.device) : 0
    setNonBlocking(libc, asyncFd)
    this.#objects = makeObjects(library, context, this.#completionsMax)
    this.pd = this.#objects.pd
    this.cq = this.#objects.cq
    this.sharedReceives = new SharedReceives(this, depth)
    this.#batchAt = libc.address(Buffer.from(this.#batch.buffer))
    this.#watcher = library.watch(this.#objects.channelFd, () => this.#handleEvent())
    const event = Buffer.alloc(ASYNC_SIZE)
    this.#asyncWatcher = library.watch(asyncFd, () => this.#handleAsyncEvent(context, event))
    process.on('exit', this.#handleExit)
  }

  /** Polls one batch of completions; returns how many. Runs no user code. */
  poll(): number {
    const { counters } = this
    const batch = this.#batch
    const count = this.functions.pollCq(this.cq, BATCH, this.#batchAt)
    if (count <= 0) {
      counters.emptyPolls++
      if (count < 0) this.#lose('its completion queue fails')
      return 0
    }
    counters.polls++
    counters.completions += count
    for (let i = 0, at = 0; i < count; i++, at += WC_WORDS) {
      const identity = batch[at + WC_ID_HIGH_WORD] as number
      const slot = identity & SLOT_MASK
      const owner =
        slot === SLOT_SHARED ? this.#sharers.get(batch[at + WC_QP_NUMBER_WORD] as number) : this.#owners[slot]
      owner?.handleCompletion(
        identity >>> IDENTITY_KIND_SHIFT,
        batch[at + WC_ID_LOW_WORD] as number,
        batch[at + WC_STATUS_WORD] as number,
        batch[at + WC_IMM_WORD] as number,
      )
    }
    return count
  }

  /** Polls until no completion is left: only then the next one makes an event. */
  pollAll(): void {
    while (this.poll() === BATCH) {}
  }

  /** Watches for completions without polls, until as many calls of `ignore`. */
  attend(): void {
    this.#attentive++
    this.#notify()
  }

  ignore(): void {
    this.#attentive--
  }

  /** Calls `owner.ring` from the event loop, in a callback of Node's: users may throw, and koffi must not see that. */
  wake(owner: CompletionOwner): void {
    this.#woken.push(owner)
    if (this.#woken.length === 1) setImmediate(this.#ringAll)
  }

  ref(): void {
    if (this.#references++ === 0) this.#watcher.ref()
  }

  unref(): void {
    if (--this.#references === 0) this.#watcher.unref()
  }

  assertUsable(): void {
    if (this.lostReason !== undefined) throw new NicError('ERR_NIC_UNAVAILABLE', this.lostReason)
    if (!this.isClosed) return
    throw new NicError('ERR_NIC_UNAVAILABLE', `${this.port.device} has another address now; connect anew`)
  }

  /** A slot for a connection that has up to `completions` of them at once. */
  enter(owner: CompletionOwner, completions: number): number {
    this.assertUsable()
    this.promise(completions)
    this.#connections++
    const free = this.#owners.indexOf(undefined)
    const slot = free < 0 ? this.#owners.length : free
    this.#owners[slot] = owner
    this.#presence ??= setInterval(() => this.#lookForDevice(), PRESENCE_MS).unref()
    return slot
  }

  leave(slot: number, completions: number): void {
    this.#owners[slot] = undefined
    this.promise(-completions)
    if (--this.#connections > 0) return
    clearInterval(this.#presence)
    this.#presence = undefined
    this.#closeIfOver()
  }

  /** Completions of receives name the queue pair of this owner, not a slot. */
  addSharer(queuePair: number, owner: CompletionOwner): void {
    this.#sharers.set(queuePair, owner)
  }

  removeSharer(queuePair: number): void {
    this.#sharers.delete(queuePair)
  }

  /** A closed connection has frames under way: the end of the process waits a little for them. */
  linger(owner: CompletionOwner, isLingering: boolean): void {
    if (isLingering) this.#lingering.add(owner)
    else this.#lingering.delete(owner)
  }

  register(address: Pointer, length: number, access: number): MemoryRegion {
    const { verbs } = this
    this.assertUsable()
    // An iWARP device receives the answer of a read as a remote write.
    const isSink = this.manager !== undefined && (access & ACCESS_LOCAL_WRITE) !== 0
    const pointer = verbs.ibv_reg_mr(this.pd, address, length, isSink ? access | ACCESS_REMOTE_WRITE : access)
    if (pointer === null) throw registrationError(verbs, length)
    const readBack = verbs.readPointer(pointer, MR_ADDRESS)
    if (readBack !== address || verbs.readPointer(pointer, MR_LENGTH) !== BigInt(length)) {
      verbs.ibv_dereg_mr(pointer)
      throw new NicError(
        'ERR_NIC_UNAVAILABLE',
        'libibverbs keeps struct ibv_mr in another way than is known here',
      )
    }
    this.counters.registrations++
    const lkey = verbs.readUint32(pointer, MR_LKEY)
    return { pointer, lkey, rkey: verbs.readUint32(pointer, MR_RKEY), length }
  }

  deregister(region: MemoryRegion): void {
    this.counters.deregistrations++
    this.verbs.ibv_dereg_mr(region.pointer)
    this.#closeIfOver()
  }

  /** The error of a failed post. */
  postError(syscall: string, said: number): NicError {
    // Some providers return it negative, as the kernel does.
    const errno = Math.abs(said)
    const name = this.verbs.libc.errnoName(errno)
    return new NicError('ERR_NIC_SYSTEM', `the device takes no more work: ${syscall} ${name}`, {
      syscall,
      errno,
    })
  }

  /** Reserves room for so many completions; throws if there is none. Negative: releases room. */
  promise(completions: number): void {
    const promised = this.#completionsPromised + completions
    let max = this.#completionsMax
    while (max < promised) max *= 2
    if (max !== this.#completionsMax) {
      // The device's own limit need not be a power of two.
      if (this.verbs.ibv_resize_cq(this.cq, max) !== 0) max = promised
      if (max === promised && this.verbs.ibv_resize_cq(this.cq, max) !== 0) {
        throw new NicError('ERR_NIC_UNAVAILABLE', `${this.port.device} has no room for more connections`)
      }
      this.#completionsMax = max
    }
    this.#completionsPromised = promised
  }

  #notify(): void {
    if (this.#isNotified) return
    this.#isNotified = true
    this.counters.notifications++
    this.functions.requestNotify(this.cq, 0)
  }

  #handleEvent(): void {
    while (this.verbs.ibv_get_cq_event(this.#objects.channel, this.#eventQueue, this.#eventOwner) === 0) {
      this.counters.events++
      this.verbs.ibv_ack_cq_events(this.cq, 1)
    }
    this.#isNotified = false
    this.pollAll()
    // Request the event before the last poll: a completion in between makes an event.
    if (this.#attentive > 0) {
      this.#notify()
      this.pollAll()
    }
  }

  readonly #ringAll = (): void => {
    const owners = this.#woken.splice(0)
    while (owners.length > 0) {
      let isDone = false
      try {
        owners.shift()?.ring()
        isDone = true
      } finally {
        // A listener threw: the others are rung in the next iteration.
        if (!isDone) for (const owner of owners) this.wake(owner)
      }
    }
  }

  #handleAsyncEvent(context: Pointer, event: Buffer): void {
    const { device, number } = this.port
    while (this.verbs.ibv_get_async_event(context, event) === 0) {
      const type = event.readInt32LE(ASYNC_TYPE)
      const isOurPort = event.readInt32LE(ASYNC_PORT) === number
      this.verbs.ibv_ack_async_event(event)
      if (type === ASYNC_DEVICE_FATAL) this.#lose(`${device} has failed or was removed`)
      // There is one queue of each kind in this context.
      else if (type === ASYNC_SHARED_QUEUE_ERROR) this.#lose(`the queue of receives of ${device} has failed`)
      else if (type === ASYNC_QUEUE_ERROR) this.#lose(`the completion queue of ${device} has failed`)
      else if (type === ASYNC_PORT_ERROR && isOurPort) this.#lose(`port ${number} of ${device} has gone down`)
      else if (type === ASYNC_GID_CHANGE && isOurPort && this.manager === undefined)
        this.#lookForAddress(context)
    }
  }

  /** Only the address that a new process would choose matters. */
  #lookForAddress(context: Pointer): void {
    const { device, number, linkLayer, gidIndex, gid } = this.port
    const chosen = chooseGid(this.verbs, context, device, number, linkLayer)
    if (chosen?.gidIndex === gidIndex && chosen.gid.equals(gid)) return
    this.isOutdated = true
    this.#closeIfOver()
  }

  #lose(reason: string): void {
    if (this.lostReason !== undefined) return
    this.lostReason = reason
    this.lostAtMs = performance.now()
    for (const owner of this.#owners) owner?.handleDeviceLost(reason)
    this.#closeIfOver()
  }

  /** Closes an adapter that was never used. */
  abandon(reason: string): void {
    this.#lose(reason)
  }

  #lookForDevice(): void {
    if (numberOf(this.#userDevice) !== this.#userDeviceNumber) this.#lose(`${this.port.device} was removed`)
  }

  /** Releases a lost device once no connection uses it: the kernel may wait for that to remove it. */
  #closeIfOver(): void {
    const isOver = this.lostReason !== undefined || this.isOutdated
    // Not within a call of koffi's.
    if (isOver && !this.isClosed) setImmediate(this.#close)
  }

  readonly #close = (): void => {
    if (this.isClosed || this.#connections > 0) return
    this.cache.clear()
    if (this.counters.registrations !== this.counters.deregistrations) return
    this.isClosed = true
    process.off('exit', this.#handleExit)
    this.#watcher.close()
    this.#asyncWatcher.close()
    this.manager?.close()
    destroyObjects(this.verbs, this.#objects)
    this.verbs.ibv_close_device(this.#context)
  }

  readonly #handleExit = (): void => {
    this.#finish()
    // koffi must not call into JavaScript while Node destroys the event loop.
    this.#watcher.close()
    this.#asyncWatcher.close()
    this.manager?.silence()
  }

  /** The process ends: posted frames go out first, as the kernel does for TCP. */
  #finish(): void {
    for (const owner of [...this.#owners]) owner?.close()
    const deadlineMs = performance.now() + EXIT_MS_MAX
    while (this.#lingering.size > 0 && performance.now() < deadlineMs) this.poll()
  }
}

/** The device's number: a later device of the same name has another one. 0 if there is none. */
function numberOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.ino ?? 0
}

function registrationError(library: VerbsLibrary, length: number): NicError {
  const error = systemError(library.libc, 'ibv_reg_mr')
  const hint = `${length} bytes cannot be pinned: ${error.message} (is RLIMIT_MEMLOCK too low? see docs/guide/rdma.md)`
  return new NicError('ERR_NIC_SYSTEM', hint, { syscall: 'ibv_reg_mr', errno: error.errno as number })
}
