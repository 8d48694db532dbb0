/**
 * RDMA reads and writes of one connection. They share the queue pair with the frames, complete in the order in which they
 * were posted, and fail together: what the peer's device refuses breaks the connection.
 *
 *   key of registered memory, 32 bytes, little-endian
 *   +0  'FSVM'   +4  access: 1 read, 2 write   +8  address (u64)   +16  length (u64)   +24  remote key (u32)   +28 zero
 */
import { CompletionQueue } from '../completions.ts'
import { isWithin } from '../copy.ts'
import { NicError } from '../errors.ts'
import type { Access, CompletionSink, Registration, RemoteMemory } from '../nic.ts'
import { BROKEN, NO_RESOURCE, OK, OUT_OF_BOUNDS, type Status } from '../status.ts'
import { OPCODE_RDMA_READ, OPCODE_RDMA_WRITE, WC_SUCCESS } from './library-layout.ts'
import type { CachedRegion, RegistrationCache } from './registration-cache.ts'
import { ONE_SIDED_MAX, type SendQueue } from './send-queue.ts'
import { SendWork } from './send-work.ts'
import type { VerbsAdapter } from './verbs-adapter.ts'
import { WORK_ONE_SIDED } from './work-identity.ts'

const KEY_MAGIC = 0x4d565346
const KEY_SIZE = 32
const KEY_ACCESS = 4
const KEY_ADDRESS = 8
const KEY_LENGTH = 16
const KEY_RKEY = 24
const READ = 1
const WRITE = 2

/** Keeps the bytes alive until `deregister`, even if no other reference is left. */
const registered = new Set<Registration>()

export class VerbsRegistration implements Registration {
  readonly bytes: Uint8Array
  readonly access: Access
  readonly key: Uint8Array
  readonly address: number
  readonly lkey: number
  readonly #cache: RegistrationCache
  #region: CachedRegion | undefined

  constructor(cache: RegistrationCache, bytes: Uint8Array, access: Access) {
    this.bytes = bytes
    this.access = access
    this.#cache = cache
    const region = cache.acquire(bytes, access)
    this.#region = region
    this.address = Number(region.addressOf(bytes))
    this.lkey = region.lkey | 0
    const key = Buffer.alloc(KEY_SIZE)
    key.writeUInt32LE(KEY_MAGIC, 0)
    key.writeUInt32LE((access.remoteRead ? READ : 0) | (access.remoteWrite ? WRITE : 0), KEY_ACCESS)
    key.writeBigUInt64LE(BigInt(this.address), KEY_ADDRESS)
    key.writeBigUInt64LE(BigInt(bytes.length), KEY_LENGTH)
    key.writeUInt32LE(region.rkey, KEY_RKEY)
    this.key = key
    registered.add(this)
  }

  /** Revocation is unsupported: the device would refuse the peer, which breaks the connection. */
  revoke(): boolean {
    return false
  }

  deregister(): void {
    if (this.#region === undefined) return
    registered.delete(this)
    this.#cache.release(this.#region)
    this.#region = undefined
  }

  get isRegistered(): boolean {
    return this.#region !== undefined
  }
}

export class VerbsMemory implements RemoteMemory {
  readonly length: number
  readonly access: Access
  readonly address: number
  readonly rkey: number

  constructor(key: Uint8Array) {
    const view = Buffer.from(key.buffer, key.byteOffset, key.byteLength)
    const isKey = view.length === KEY_SIZE && view.readUInt32LE(0) === KEY_MAGIC
    const address = isKey ? Number(view.readBigUInt64LE(KEY_ADDRESS)) : 0
    const length = isKey ? Number(view.readBigUInt64LE(KEY_LENGTH)) : 0
    if (!isKey || !Number.isSafeInteger(address + length)) {
      throw new NicError('ERR_NIC_ARGUMENT', 'this is not a key of memory that an RDMA device knows')
    }
    const access = view.readUInt32LE(KEY_ACCESS)
    this.address = address
    this.length = length
    this.access = { remoteRead: (access & READ) !== 0, remoteWrite: (access & WRITE) !== 0 }
    this.rkey = view.readUInt32LE(KEY_RKEY) | 0
  }
}

export class OneSided {
  readonly #queue: SendQueue
  readonly #work: SendWork
  readonly #completed = new CompletionQueue(ONE_SIDED_MAX)
  /** Work ids that were posted and have not completed, in order. */
  readonly #posted = new Float64Array(ONE_SIDED_MAX)
  #first = 0
  #underWay = 0
  #unpolled = 0

  constructor(adapter: VerbsAdapter, queue: SendQueue) {
    this.#queue = queue
    this.#work = new SendWork(adapter.verbs.libc, 0)
  }

  get underWay(): number {
    return this.#underWay
  }

  start(
    isRead: boolean,
    local: VerbsRegistration,
    localOffset: number,
    remote: VerbsMemory,
    remoteOffset: number,
    length: number,
    workId: number,
    isPeerGone: boolean,
  ): Status {
    if (!local.isRegistered || !isWithin(localOffset, length, local.bytes.length)) return OUT_OF_BOUNDS
    if (!isWithin(remoteOffset, length, remote.length)) return OUT_OF_BOUNDS
    if (this.#underWay + this.#unpolled === ONE_SIDED_MAX) return NO_RESOURCE
    if (isPeerGone) {
      this.#unpolled++
      this.#completed.push(workId, BROKEN)
      return OK
    }
    if (!this.#queue.hasPlace) return NO_RESOURCE
    const opcode = isRead ? OPCODE_RDMA_READ : OPCODE_RDMA_WRITE
    this.#work.setTransfer(opcode, length, local.lkey, remote.rkey)
    this.#work.setAddresses(local.address + localOffset, remote.address + remoteOffset)
    if (this.#queue.post(this.#work, WORK_ONE_SIDED, true, false) !== 0) return NO_RESOURCE
    this.#posted[(this.#first + this.#underWay) % ONE_SIDED_MAX] = workId
    this.#underWay++
    return OK
  }

  handleCompletion(status: number): void {
    if (this.#underWay === 0) return
    const workId = this.#posted[this.#first] as number
    this.#first = (this.#first + 1) % ONE_SIDED_MAX
    this.#underWay--
    this.#unpolled++
    this.#completed.push(workId, status === WC_SUCCESS ? OK : BROKEN)
  }

  poll(sink: CompletionSink, limit: number): number {
    const count = this.#completed.poll(sink, limit)
    this.#unpolled -= count
    return count
  }
}
