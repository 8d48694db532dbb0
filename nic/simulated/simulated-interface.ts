/**
 * A virtual interface of a simulated NIC. Over a reliable network each end keeps account of the bytes that the peer has not
 * polled, as a ring does; over any other the peer's receive descriptors are all there is, and the layer above must keep to
 * them.
 */
import { CompletionQueue } from '../completions.ts'
import { copyBytes, hasBytes, isWithin } from '../copy.ts'
import type { NicError } from '../errors.ts'
import type {
  Access,
  Capabilities,
  CompletionSink,
  FrameSink,
  InterfaceState,
  Registration,
  RemoteMemory,
  VirtualInterface,
} from '../nic.ts'
import { align8 } from '../ring/ring-layout.ts'
import { BROKEN, CLOSED, NO_RESOURCE, OK, OUT_OF_BOUNDS, type Status, UNSUPPORTED } from '../status.ts'
import type { SimulatedHost } from './simulated-host.ts'
import type { SimulatedMemory } from './simulated-memory.ts'
import type { FrameTarget, SimulatedNetwork } from './simulated-network.ts'

/** Bytes of a frame's descriptor, which count against the queue. */
const DESCRIPTOR_SIZE = 8
const COMPLETIONS_MAX = 64
const NO_BYTES = new Uint8Array(0)
const NO_WORDS = new Int32Array(0)
const NO_RDMA = 'the simulated NIC has no one-sided access'

export class SimulatedInterface implements VirtualInterface, FrameTarget {
  readonly driver: string
  readonly host: SimulatedHost
  readonly capabilities: Capabilities
  state: InterfaceState = 'open'
  failure: NicError | undefined
  sendBytes: Uint8Array
  sendWords: Int32Array
  receiveWords: Int32Array
  peer: SimulatedInterface | undefined
  comparedCount = 1
  readonly #network: SimulatedNetwork
  readonly #queueSize: number
  #receiveBytes: Uint8Array
  /** Frames that have arrived and were not polled. */
  readonly #arrived: Uint8Array[] = []
  /** Bytes that the peer has not polled, as far as is known here. */
  #underWay = 0
  #isPolling = false
  #isArmed = false
  #roomWanted = 0
  #listener: () => void = () => {}
  readonly #completions = new CompletionQueue(COMPLETIONS_MAX)
  /** When the last one-sided operation ends. */
  #completeAtUs = 0

  constructor(network: SimulatedNetwork, host: SimulatedHost, driver: string, queueSize: number) {
    this.#network = network
    this.host = host
    host.interfaceCount++
    this.driver = driver
    this.#queueSize = queueSize
    this.capabilities = capabilitiesOf(network, queueSize)
    const { frameMax } = this.capabilities
    const sending = new ArrayBuffer(align8(frameMax))
    this.sendBytes = new Uint8Array(sending)
    this.sendWords = new Int32Array(sending)
    const receiving = new ArrayBuffer(align8(frameMax))
    this.#receiveBytes = new Uint8Array(receiving)
    this.receiveWords = new Int32Array(receiving)
  }

  reserve(length: number): number {
    const { frameMax } = this.capabilities
    if (!(length <= frameMax)) throw new RangeError(`a frame of ${length} bytes; the most is ${frameMax}`)
    if (this.state !== 'open') return this.#refusal()
    return this.hasRoom(length) ? 0 : NO_RESOURCE
  }

  commit(length: number): void {
    const { sendUs, sendsInPlace } = this.#network.hardware
    this.host.charge(sendUs)
    if (!sendsInPlace) this.host.chargeCopy(length)
    const { peer } = this
    if (peer === undefined) return
    const size = sizeOf(length)
    this.#underWay += size
    const frame = Buffer.allocUnsafe(length)
    copyBytes(this.sendBytes, 0, frame, 0, length)
    const sentAtUs = this.#network.send(this.host, peer, frame)
    if (!this.#network.isReliable) this.#network.timeline.schedule(sentAtUs, () => this.regainRoom(size))
  }

  cancel(): void {}

  hasRoom(length: number): boolean {
    return this.state === 'open' && this.#underWay + sizeOf(length) <= this.#queueSize
  }

  poll(sink: FrameSink, limit: number): number {
    if (this.state !== 'open') return this.#refusal()
    if (this.#isPolling) throw new Error('poll was called from within a frame handler')
    const { hardware } = this.#network
    const arrived = this.#arrived
    if (arrived.length === 0) this.host.charge(hardware.pollUs)
    let handled = 0
    let polled = 0
    this.#isPolling = true
    try {
      while (handled < limit && arrived.length > 0 && this.#isOpen()) {
        const frame = arrived.shift() as Uint8Array
        const { length } = frame
        handled++
        polled += sizeOf(length)
        this.host.charge(hardware.receiveUs)
        this.host.chargeCopy(length)
        copyBytes(frame, 0, this.#receiveBytes, 0, length)
        sink.handleFrame(this.#receiveBytes, 0, length)
      }
    } finally {
      this.#isPolling = false
      if (polled > 0 && this.#network.isReliable) this.#returnRoom(polled)
    }
    return handled
  }

  arm(forRoom: number): boolean {
    if (this.state !== 'open' || this.#arrived.length > 0) return false
    if (forRoom > 0 && this.hasRoom(forRoom)) return false
    this.#isArmed = true
    this.#roomWanted = forRoom
    return true
  }

  disarm(): void {
    this.#isArmed = false
    this.#roomWanted = 0
  }

  setDoorbell(listener: () => void): void {
    this.#listener = listener
  }

  /** Virtual time has no event loop to keep alive. */
  ref(): void {}

  unref(): void {}

  register(bytes: Uint8Array, access: Access): Registration {
    return this.#network.memories.register(this.host, bytes, access)
  }

  importKey(key: Uint8Array): RemoteMemory {
    return this.#network.memories.importKey(key)
  }

  rdmaRead(
    local: Registration,
    localOffset: number,
    remote: RemoteMemory,
    remoteOffset: number,
    length: number,
    workId: number,
  ): Status {
    if (!this.capabilities.rdmaRead) return UNSUPPORTED
    if (!remote.access.remoteRead) return OUT_OF_BOUNDS
    const refusal = this.#checkTransfer(local, localOffset, remote, remoteOffset, length)
    if (refusal !== OK) return refusal
    const memory = remote as SimulatedMemory
    const { host } = memory.registration
    const isMoved = this.#reaches(memory) && hasBytes(local.bytes, localOffset + length)
    if (isMoved) copyBytes(memory.registration.bytes, remoteOffset, local.bytes, localOffset, length)
    const us =
      this.#network.transferUs(this.host, host, 0) + this.#network.transferUs(host, this.host, length)
    this.#complete(workId, isMoved, us)
    return OK
  }

  rdmaWrite(
    local: Registration,
    localOffset: number,
    remote: RemoteMemory,
    remoteOffset: number,
    length: number,
    workId: number,
  ): Status {
    if (!this.capabilities.rdmaWrite) return UNSUPPORTED
    if (!remote.access.remoteWrite) return OUT_OF_BOUNDS
    const refusal = this.#checkTransfer(local, localOffset, remote, remoteOffset, length)
    if (refusal !== OK) return refusal
    const memory = remote as SimulatedMemory
    const { host } = memory.registration
    const isMoved = this.#reaches(memory) && hasBytes(local.bytes, localOffset + length)
    if (isMoved) copyBytes(local.bytes, localOffset, memory.registration.bytes, remoteOffset, length)
    this.#complete(workId, isMoved, this.#network.transferUs(this.host, host, length))
    return OK
  }

  /** A caller that asks for a completion waits for it: it spins. */
  pollCompletions(sink: CompletionSink, limit: number): number {
    if (this.state !== 'open') return 0
    this.host.spinUntil(this.#completeAtUs)
    return this.#completions.poll(sink, limit)
  }

  close(): void {
    if (this.state === 'closed') return
    this.state = 'closed'
    this.host.interfaceCount--
    this.disarm()
    this.sendBytes = NO_BYTES
    this.sendWords = NO_WORDS
    this.receiveWords = NO_WORDS
    this.#receiveBytes = NO_BYTES
    this.#arrived.length = 0
    this.peer = undefined
  }

  deliver(frame: Uint8Array): void {
    if (this.state !== 'open' || this.host.state === 'dead') return
    const { isReliable, hardware, counters } = this.#network
    if (!isReliable && this.#arrived.length >= hardware.descriptors) {
      counters.overruns++
      return
    }
    this.#arrived.push(frame)
    if (this.#isArmed) this.#ring()
  }

  /** Bytes of room come back from the peer, or from the NIC that has sent them. */
  regainRoom(size: number): void {
    this.#underWay -= size
    if (this.#roomWanted > 0 && this.hasRoom(this.#roomWanted)) this.#ring()
  }

  #isOpen(): boolean {
    return this.state === 'open'
  }

  /** The peer learns it as late as of a frame. */
  #returnRoom(size: number): void {
    const { peer, host } = this
    if (peer === undefined) return
    const { linkUs, switchUs } = this.#network.hardware
    this.#network.timeline.schedule(host.nowUs + linkUs + switchUs, () => peer.regainRoom(size))
  }

  /** An interrupt, or the next poll: the process runs a while later. */
  #ring(): void {
    this.disarm()
    this.host.post(this.host.wakeUs, () => {
      if (this.state !== 'closed') this.#listener()
    })
  }

  #reaches(memory: SimulatedMemory): boolean {
    const { host } = memory.registration
    return memory.isThere && !this.host.isCutOff && !this.#network.isCut(this.host, host)
  }

  #complete(workId: number, isMoved: boolean, us: number): void {
    this.host.charge(this.#network.hardware.sendUs)
    this.#completeAtUs = Math.max(this.#completeAtUs, this.host.nowUs + us)
    this.#completions.push(workId, isMoved ? OK : BROKEN)
  }

  #checkTransfer(
    local: Registration,
    localOffset: number,
    remote: RemoteMemory,
    remoteOffset: number,
    length: number,
  ): Status {
    if (this.state !== 'open') return this.#refusal()
    if (!isWithin(localOffset, length, local.bytes.length)) return OUT_OF_BOUNDS
    if (!isWithin(remoteOffset, length, remote.length)) return OUT_OF_BOUNDS
    return this.#completions.isFull ? NO_RESOURCE : OK
  }

  #refusal(): typeof BROKEN | typeof CLOSED {
    return this.state === 'broken' ? BROKEN : CLOSED
  }
}

function sizeOf(length: number): number {
  return align8(length) + DESCRIPTOR_SIZE
}

function capabilitiesOf({ hardware, isReliable }: SimulatedNetwork, queueSize: number): Capabilities {
  const frameMax = Math.min(hardware.frameMax, queueSize / 8)
  return {
    ordered: isReliable,
    reliable: isReliable,
    frameMax,
    inlineMax: frameMax,
    rdmaRead: hardware.oneSided === 'read and write',
    rdmaWrite: hardware.oneSided !== 'none',
    rdmaReason: hardware.oneSided === 'read and write' ? undefined : NO_RDMA,
    wakeFd: false,
    ...(isReliable ? {} : { receiveDescriptors: hardware.descriptors }),
  }
}
