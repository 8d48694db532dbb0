/**
 * Registered memory, kept for the next use (WSDLite's registration cache). A registration costs a system call and pins
 * pages. So a region stays registered after its use, until it is the oldest and others need its room.
 *
 *   hit          a region of the same memory, with the same rights, covers the bytes
 *   extension    a region is too small: a larger one that covers both replaces it
 *   miss         there is none
 *
 * A region is never stale. JavaScript memory is freed only without a reference to its ArrayBuffer, and an entry has a
 * reference as long as the region is registered: other memory cannot get the same address. An ArrayBuffer that was
 * transferred away is empty, and its entries are dropped when that is noticed.
 *
 * Memory that a peer may write to is not kept: the right ends with its user. Nor is resizable memory: after shrinking
 * and growing it has other pages at the same address. Nor is memory that is used once: the cache would keep it from
 * being collected.
 */
import { NicError } from '../errors.ts'
import type { Access } from '../nic.ts'
import { ACCESS_LOCAL_WRITE, ACCESS_REMOTE_READ, ACCESS_REMOTE_WRITE } from './library-layout.ts'
import { halfOfPinnable } from './pinnable.ts'
import type { MemoryRegion, VerbsDevice } from './verbs-device.ts'

/** Most bytes of unused memory; used memory counts too but is never dropped. Less under a low limit. */
const PINNED_MAX = 256 * 1024 * 1024
const ENTRIES_MAX = 1024

export class CachedRegion {
  readonly region: MemoryRegion
  readonly buffer: ArrayBufferLike
  readonly begin: number
  readonly end: number
  readonly rights: number
  /** Address of the buffer's first byte. */
  readonly base: bigint
  users = 0
  /** Look-ups do not find it; it ends with its last user. */
  isRetired = false

  constructor(
    region: MemoryRegion,
    buffer: ArrayBufferLike,
    base: bigint,
    begin: number,
    end: number,
    rights: number,
  ) {
    this.region = region
    this.buffer = buffer
    this.base = base
    this.begin = begin
    this.end = end
    this.rights = rights
  }

  get lkey(): number {
    return this.region.lkey
  }

  get rkey(): number {
    return this.region.rkey
  }

  addressOf(bytes: Uint8Array): bigint {
    return this.base + BigInt(bytes.byteOffset)
  }

  get isDetached(): boolean {
    return this.buffer.byteLength < this.end
  }
}

export class RegistrationCache {
  readonly #adapter: VerbsDevice
  readonly #pinnedMax: number
  readonly #entriesMax: number
  /** Oldest use first. */
  readonly #entries = new Set<CachedRegion>()
  readonly #ofBuffer = new WeakMap<ArrayBufferLike, Set<CachedRegion>>()
  #pinned = 0

  constructor(adapter: VerbsDevice, pinnedMax = halfOfPinnable(PINNED_MAX), entriesMax = ENTRIES_MAX) {
    this.#adapter = adapter
    this.#pinnedMax = pinnedMax
    this.#entriesMax = entriesMax
  }

  get pinnedBytes(): number {
    return this.#pinned
  }

  get entryCount(): number {
    return this.#entries.size
  }

  /** A region that covers `bytes`, for the caller until `release`. */
  acquire(bytes: Uint8Array, access: Access): CachedRegion {
    const { counters } = this.#adapter
    const rights = rightsOf(access)
    const begin = bytes.byteOffset
    const end = begin + bytes.byteLength
    const known = this.#find(bytes.buffer, rights)
    if (known !== undefined && known.begin <= begin && known.end >= end) {
      counters.cacheHits++
      return this.#use(known)
    }
    if (known === undefined) counters.cacheMisses++
    else counters.cacheExtensions++
    if (known === undefined || (rights & ACCESS_REMOTE_WRITE) !== 0) {
      const entry = this.#add(bytes, rights, begin, end)
      entry.isRetired = access.isOnce === true || isResizable(bytes.buffer)
      return entry
    }
    this.#retire(known)
    return this.#add(bytes, rights, Math.min(begin, known.begin), Math.max(end, known.end))
  }

  release(entry: CachedRegion): void {
    entry.users--
    if (entry.users > 0) return
    const isKept = !entry.isRetired && !entry.isDetached && (entry.rights & ACCESS_REMOTE_WRITE) === 0
    if (!isKept) this.#drop(entry)
    this.#makeRoom(0, 0)
  }

  /** Drops all unused entries; true if there was one. */
  clear(): boolean {
    const unused = [...this.#entries].filter(entry => entry.users === 0)
    for (const entry of unused) this.#drop(entry)
    return unused.length > 0
  }

  #find(buffer: ArrayBufferLike, rights: number): CachedRegion | undefined {
    // Memory that the peer may write has one user: each has a key of its own, which ends with it.
    if ((rights & ACCESS_REMOTE_WRITE) !== 0) return undefined
    for (const entry of this.#ofBuffer.get(buffer) ?? []) {
      if (entry.rights !== rights || entry.isRetired) continue
      if (!entry.isDetached) return entry
      this.#retire(entry)
    }
    return undefined
  }

  #use(entry: CachedRegion): CachedRegion {
    entry.users++
    this.#entries.delete(entry)
    this.#entries.add(entry)
    return entry
  }

  #add(bytes: Uint8Array, rights: number, begin: number, end: number): CachedRegion {
    const { buffer } = bytes
    // A small Uint8Array may be in V8's heap, where it moves, until its buffer is read; the caller has read it.
    const base = this.#adapter.verbs.libc.address(new Uint8Array(buffer as ArrayBuffer))
    const length = end - begin
    this.#makeRoom(length, 1)
    const entry = new CachedRegion(
      this.#register(base + BigInt(begin), length, rights),
      buffer,
      base,
      begin,
      end,
      rights,
    )
    this.#pinned += length
    this.#entries.add(entry)
    const siblings = this.#ofBuffer.get(buffer)
    if (siblings === undefined) this.#ofBuffer.set(buffer, new Set([entry]))
    else siblings.add(entry)
    return this.#use(entry)
  }

  /** If the system refuses to pin more, all unused entries are dropped first. */
  #register(address: bigint, length: number, rights: number): MemoryRegion {
    if (length === 0) throw new NicError('ERR_NIC_ARGUMENT', 'memory of no bytes cannot be registered')
    try {
      return this.#adapter.register(address, length, rights)
    } catch (error) {
      if (!this.clear()) throw error
      return this.#adapter.register(address, length, rights)
    }
  }

  #retire(entry: CachedRegion): void {
    entry.isRetired = true
    if (entry.users === 0) this.#drop(entry)
  }

  #makeRoom(length: number, entries: number): void {
    for (const entry of this.#entries) {
      const isRoom =
        this.#pinned + length <= this.#pinnedMax && this.#entries.size + entries <= this.#entriesMax
      if (isRoom) return
      if (entry.users > 0) continue
      this.#adapter.counters.cacheEvictions++
      this.#drop(entry)
    }
  }

  #drop(entry: CachedRegion): void {
    if (!this.#entries.delete(entry)) return
    this.#ofBuffer.get(entry.buffer)?.delete(entry)
    this.#pinned -= entry.end - entry.begin
    this.#adapter.deregister(entry.region)
  }
}

/** Missing in the typings. */
function isResizable(buffer: ArrayBufferLike): boolean {
  return (buffer as { readonly resizable?: boolean }).resizable === true
}

function rightsOf(access: Access): number {
  return (
    ACCESS_LOCAL_WRITE |
    (access.remoteRead ? ACCESS_REMOTE_READ : 0) |
    (access.remoteWrite ? ACCESS_REMOTE_WRITE : 0)
  )
}
