/**
 * Connects queue pairs of iWARP devices by the kernel's connection manager, which uses TCP connections of the device.
 * One end listens at a port; the other calls it and names an offer by its nonce. No function here waits: events arrive
 * on a channel whose descriptor is polled with the others.
 */
import { accessSync, constants } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { NicError } from '../errors.ts'
import { type PollHandle, systemError } from '../posix/libc.ts'
import { mappedAddress, socketAddress } from '../posix/socket-address.ts'
import { setNonBlocking } from './descriptors.ts'
import {
  CONTEXT_DEVICE,
  EVENT_ADDRESS_RESOLVED,
  EVENT_CHANNEL_FD,
  EVENT_DISCONNECTED,
  EVENT_ESTABLISHED,
  EVENT_ID,
  EVENT_PRIVATE_DATA,
  EVENT_PRIVATE_LENGTH,
  EVENT_REQUEST,
  EVENT_ROUTE_RESOLVED,
  EVENT_STATUS,
  EVENT_TYPE,
  EVENTS_FAILED,
  ID_CONTEXT,
  ID_OWN_ADDRESS,
  SPACE_TCP,
} from './manager-layout.ts'
import { loadManager, type ManagerLibrary } from './manager-library.ts'
import type { Pointer, VerbsLibrary } from './verbs-library.ts'
import { Way, type WayUser } from './way.ts'

/** Callers that the kernel queues until their events are read. */
const BACKLOG = 64
/** Private data of a call: the nonce, and nothing else. */
const NONCE_SIZE = 16
const DEVICE_NODE = '/dev/infiniband/rdma_cm'

export class ConnectionManager {
  readonly rdmacm: ManagerLibrary
  readonly verbs: VerbsLibrary
  /** The device's address, in 16 bytes; IPv4 is mapped. */
  readonly address: Buffer
  readonly #channel: Pointer
  readonly #listener: Pointer
  readonly #watcher: PollHandle
  readonly #event = Buffer.alloc(8)
  readonly #ways = new Map<Pointer, Way>()
  /** By nonce: connections that wait for their call. */
  readonly #awaited = new Map<string, Way>()
  #port = 0

  constructor(
    rdmacm: ManagerLibrary,
    verbs: VerbsLibrary,
    channel: Pointer,
    listener: Pointer,
    address: Buffer,
  ) {
    this.rdmacm = rdmacm
    this.verbs = verbs
    this.address = address
    this.#channel = channel
    this.#listener = listener
    const fd = verbs.readUint32(channel, EVENT_CHANNEL_FD)
    setNonBlocking(verbs.libc, fd)
    this.#watcher = verbs.watch(fd, () => this.#handleEvents())
  }

  /** The port that others call; listens from the first read on. */
  get port(): number {
    if (this.#port !== 0) return this.#port
    if (this.rdmacm.rdma_listen(this.#listener, BACKLOG) !== 0)
      throw systemError(this.verbs.libc, 'rdma_listen')
    const bound = this.verbs.readUint32(this.#listener, ID_OWN_ADDRESS)
    this.#port = ((bound >>> 16) & 0xff) * 256 + (bound >>> 24)
    return this.#port
  }

  /** Lets a peer call with the nonce. The connection is made after the call and `accept`, in either order. */
  expect(nonce: Buffer, number: number, user: WayUser): Way {
    const way = new Way(this, nonce, number, user)
    this.#awaited.set(nonce.toString('hex'), way)
    return way
  }

  call(address: Buffer, port: number, nonce: Buffer, number: number, user: WayUser): Way {
    const id = createId(this.rdmacm, this.verbs, this.#channel)
    const way = new Way(this, nonce, number, user)
    this.#ways.set(id, way)
    way.call(id, socketAddress(this.address, 0), socketAddress(address, port))
    return way
  }

  /** Removes a connection whose id is gone or whose nonce is void. */
  forget(way: Way, nonce: Buffer, id: Pointer | undefined): void {
    const key = nonce.toString('hex')
    // Another caller of this process may use the same nonce.
    if (this.#awaited.get(key) === way) this.#awaited.delete(key)
    if (id !== undefined) this.#ways.delete(id)
  }

  /** True if no connection is left. */
  close(): void {
    this.#watcher.close()
    this.rdmacm.rdma_destroy_id(this.#listener)
    this.rdmacm.rdma_destroy_event_channel(this.#channel)
  }

  /** koffi must not call into JavaScript while Node destroys the event loop. */
  silence(): void {
    this.#watcher.close()
  }

  #handleEvents(): void {
    const { rdmacm, verbs } = this
    while (rdmacm.rdma_get_cm_event(this.#channel, this.#event) === 0) {
      const at = this.#event.readBigUInt64LE(0)
      const id = verbs.readPointer(at, EVENT_ID)
      const type = verbs.readUint32(at, EVENT_TYPE)
      const status = verbs.readUint32(at, EVENT_STATUS) | 0
      const nonce = type === EVENT_REQUEST ? this.#nonceOf(at) : ''
      // An id cannot be destroyed while one of its events is not acknowledged.
      rdmacm.rdma_ack_cm_event(at)
      if (type === EVENT_REQUEST) this.#handleRequest(id, nonce)
      else this.#handleEvent(this.#ways.get(id), type, status)
    }
  }

  #nonceOf(event: Pointer): string {
    const { verbs } = this
    if ((verbs.readUint32(event, EVENT_PRIVATE_LENGTH) & 0xff) < NONCE_SIZE) return ''
    const data = verbs.readPointer(event, EVENT_PRIVATE_DATA)
    const nonce = Buffer.alloc(NONCE_SIZE)
    for (let at = 0; at < NONCE_SIZE; at += 4) nonce.writeUInt32LE(verbs.readUint32(data, at), at)
    return nonce.toString('hex')
  }

  #handleRequest(id: Pointer, nonce: string): void {
    const way = this.#awaited.get(nonce)
    // Destroying the id rejects the caller.
    if (way === undefined) return void this.rdmacm.rdma_destroy_id(id)
    this.#awaited.delete(nonce)
    this.#ways.set(id, way)
    way.handleRequest(id)
  }

  #handleEvent(way: Way | undefined, type: number, status: number): void {
    if (way === undefined) return
    const failure = EVENTS_FAILED[type]
    if (failure !== undefined) way.handleFailure(status === 0 ? failure : `${failure} (${status})`)
    else if (type === EVENT_ADDRESS_RESOLVED) way.handleAddress()
    else if (type === EVENT_ROUTE_RESOLVED) way.handleRoute()
    else if (type === EVENT_ESTABLISHED) way.handleEstablished()
    else if (type === EVENT_DISCONNECTED) way.handleDisconnected()
  }
}

/** The manager for the device with this name; a text with the reason if there is none. */
export function openManager(verbs: VerbsLibrary, device: string): ConnectionManager | string {
  const library = loadManager()
  if (typeof library === 'string') return library
  // The library may block here for seconds.
  try {
    accessSync(DEVICE_NODE, constants.R_OK | constants.W_OK)
  } catch (error) {
    return `${DEVICE_NODE} ${(error as NodeJS.ErrnoException).code}; its module is rdma_ucm`
  }
  const made = library.rdma_create_event_channel()
  if (made === null) return `${DEVICE_NODE} ${systemError(verbs.libc, 'rdma_create_event_channel').message}`
  const channel = BigInt(made)
  let refusal = 'none of the IP addresses of this host belongs to it'
  try {
    for (const address of ownAddresses()) {
      const mapped = mappedAddress(address)
      const id = createId(library, verbs, channel)
      if (library.rdma_bind_addr(id, socketAddress(mapped, 0)) === 0 && deviceOf(verbs, id) === device)
        return new ConnectionManager(library, verbs, channel, id, mapped)
      library.rdma_destroy_id(id)
    }
  } catch (error) {
    refusal = (error as Error).message
  }
  library.rdma_destroy_event_channel(channel)
  return refusal
}

/** The device that the connection manager has found for the address. */
function deviceOf(verbs: VerbsLibrary, id: Pointer): string | undefined {
  const context = verbs.readPointer(id, ID_CONTEXT)
  return context === 0n ? undefined : verbs.ibv_get_device_name(verbs.readPointer(context, CONTEXT_DEVICE))
}

/** IPv4 first. */
function ownAddresses(): string[] {
  return Object.values(networkInterfaces())
    .flatMap(entries => entries ?? [])
    .filter(({ internal, scopeid }) => !internal && !scopeid)
    .sort((a, b) => a.family.localeCompare(b.family))
    .map(({ address }) => address)
}

function createId(library: ManagerLibrary, verbs: VerbsLibrary, channel: Pointer): Pointer {
  const id = Buffer.alloc(8)
  if (library.rdma_create_id(channel, id, null, SPACE_TCP) !== 0) {
    const { message } = systemError(verbs.libc, 'rdma_create_id')
    throw new NicError('ERR_NIC_UNAVAILABLE', message)
  }
  return id.readBigUInt64LE(0)
}
