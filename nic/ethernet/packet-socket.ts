/**
 * An AF_PACKET socket (packet(7)) of one interface, with its receive ring. The kernel puts a frame into the ring if its ID
 * is this interface's: tag matching, as the NIC does it in "sockets over EMP" (2002, section 4).
 */
import { close } from 'node:fs'
import { isMainThread } from 'node:worker_threads'
import { NicError } from '../errors.ts'
import { makeHidden } from '../own-resources.ts'
import {
  AF_PACKET,
  PACKET_IGNORE_OUTGOING,
  PACKET_QDISC_BYPASS,
  PACKET_RX_RING,
  PACKET_STATISTICS,
  PACKET_VERSION,
  SOL_PACKET,
  TPACKET_V2,
} from '../posix/constants.ts'
import { type Libc, type PollHandle, systemError } from '../posix/libc.ts'
import { type Mapping, mapShared, unmapShared } from '../posix/mapping.ts'
import { forgetDescriptor, noteDescriptor } from '../threads/thread-ranges.ts'
import type { Device } from './device.ts'
import { ETHERTYPE } from './frame-layout.ts'
import { type RingShape, ringShape } from './ring-layout.ts'

/** struct sockaddr_ll: family u16, protocol u16 (big-endian), index of the device i32, and what bind does not use. */
const ADDRESS_SIZE = 20
/** struct tpacket_req: size and number of blocks, size and number of slots. */
const REQUEST_SIZE = 16

export class PacketSocket {
  readonly fd: number
  readonly shape: RingShape
  readonly memory: ArrayBuffer
  readonly #libc: Libc
  readonly #mapping: Mapping | undefined
  #watcher: PollHandle | undefined

  /** Owns `fd`, a socket of `openPacketSocket`, from now on, and receives at once. */
  constructor(libc: Libc, fd: number, device: Device, queueSize: number) {
    this.#libc = libc
    this.fd = fd
    this.shape = ringShape(queueSize, device.mtu)
    try {
      this.#set(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
      this.#set(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
      this.#set(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
      this.#postReceives()
      const { blockSize, blockCount } = this.shape
      const mapping = mapShared(libc, fd, blockSize * blockCount)
      this.#mapping = mapping
      this.memory = mapping.memory
      this.#bind(device.index)
      noteDescriptor(fd)
    } catch (error) {
      this.close()
      throw error
    }
  }

  /** Calls `listener` from the event loop while there are frames, or now and then in a worker, until `hush`. */
  watch(listener: () => void, isRef: boolean): void {
    if (this.#watcher === undefined) this.#watcher = this.#libc.watch(this.fd, listener)
    else this.#watcher.start({ readable: true }, listener)
    if (isRef) this.#watcher.ref()
    else this.#watcher.unref()
  }

  hush(): void {
    this.#watcher?.stop()
  }

  ref(): void {
    this.#watcher?.ref()
  }

  unref(): void {
    this.#watcher?.unref()
  }

  /** Frames that the kernel has dropped since the last call, because no receive was posted. */
  takeDrops(): number {
    const counts = Buffer.alloc(8)
    const size = Buffer.alloc(4)
    size.writeInt32LE(counts.length)
    const isKnown = this.#libc.getsockopt(this.fd, SOL_PACKET, PACKET_STATISTICS, counts, size) >= 0
    return isKnown ? counts.readUInt32LE(4) : 0
  }

  /** The kernel waits up to 40 ms for its other cores: on the main thread Node's pool does that. */
  close(): void {
    this.#watcher?.close()
    if (this.#mapping !== undefined) unmapShared(this.#libc, this.#mapping)
    forgetDescriptor(this.fd)
    if (isMainThread) makeHidden(() => close(this.fd, () => {}))
    // A worker that is stopped would leave it open.
    else this.#libc.close(this.fd)
  }

  #postReceives(): void {
    const { blockSize, blockCount, slotSize, slotCount } = this.shape
    const request = Buffer.alloc(REQUEST_SIZE)
    request.writeUInt32LE(blockSize, 0)
    request.writeUInt32LE(blockCount, 4)
    request.writeUInt32LE(slotSize, 8)
    request.writeUInt32LE(slotCount, 12)
    if (this.#libc.setsockopt(this.fd, SOL_PACKET, PACKET_RX_RING, request, request.length) < 0)
      throw systemError(this.#libc, 'setsockopt PACKET_RX_RING')
  }

  #bind(index: number): void {
    const address = Buffer.alloc(ADDRESS_SIZE)
    address.writeUInt16LE(AF_PACKET, 0)
    address.writeUInt16BE(ETHERTYPE, 2)
    address.writeInt32LE(index, 4)
    if (this.#libc.bind(this.fd, address, address.length) < 0) throw systemError(this.#libc, 'bind')
  }

  #set(level: number, name: number, setting: number): void {
    const value = Buffer.alloc(4)
    value.writeInt32LE(setting)
    if (this.#libc.setsockopt(this.fd, level, name, value, value.length) < 0) {
      const { message, errno } = systemError(this.#libc, `setsockopt ${name}`)
      throw new NicError('ERR_NIC_UNAVAILABLE', `this kernel has no ${message}`, { errno: errno as number })
    }
  }
}
