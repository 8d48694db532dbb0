/**
 * Hosts round one switch. Each frame is two events: it reaches the switch, where it meets the faults of the network, and it
 * lies in the receiver's memory. All that happens follows from the seed and from the calls.
 */
import { FaultRandom } from '../fault/fault-random.ts'
import type { Hardware } from './hardware.ts'
import { FaultCounters, type NetworkFaults, NO_FAULTS } from './network-faults.ts'
import { SimulatedHost, type Stage } from './simulated-host.ts'
import { MemoryTable } from './simulated-memory.ts'
import { Timeline } from './timeline.ts'

const FLIPS_MAX = 4
/** FNV-1a, 32 bits. */
const HASH_START = 0x811c9dc5
const HASH_PRIME = 0x01000193

/** An end that frames reach. */
export interface FrameTarget {
  readonly host: SimulatedHost
  /** The frame lies in memory of the host. */
  deliver(frame: Uint8Array): void
  /** Receive descriptors that the NIC compares with a frame before it finds the right one. */
  readonly comparedCount: number
}

export interface NetworkOptions {
  readonly seed: number
  readonly hardware: Hardware
  /** The network may lose frames: interfaces say that they are not reliable, whatever the hardware promises. */
  readonly mayLose?: boolean
}

export class SimulatedNetwork {
  readonly timeline = new Timeline()
  readonly hosts: SimulatedHost[] = []
  readonly hardware: Hardware
  readonly isReliable: boolean
  readonly random: FaultRandom
  readonly faults: NetworkFaults = { ...NO_FAULTS }
  readonly counters = new FaultCounters()
  readonly memories = new MemoryTable(() => this.newIdentity())
  /** Frames that have reached the switch. */
  frameCount = 0
  #hash = HASH_START
  readonly #partitions = new Set<string>()
  /** Frames that a reliable network keeps until its partition heals. */
  #held: { readonly from: SimulatedHost; readonly to: FrameTarget; readonly go: () => void }[] = []
  #identities = 0

  constructor({ seed, hardware, mayLose = false }: NetworkOptions) {
    this.hardware = hardware
    this.isReliable = hardware.isReliable && !mayLose
    this.random = new FaultRandom(seed)
  }

  /** `beside`: another process of the same machine, on a CPU of its own. */
  addHost(beside?: SimulatedHost): SimulatedHost {
    const host = new SimulatedHost(this.hosts.length, this.hardware, this.timeline, beside?.nic)
    this.hosts.push(host)
    return host
  }

  /** An identity of 16 bytes that no other thing of this network has. */
  newIdentity(): Buffer {
    const bytes = Buffer.alloc(16)
    for (let at = 0; at < 12; at += 4) bytes.writeUInt32LE(this.random.word(), at)
    bytes.writeUInt32LE(this.#identities++, 12)
    return bytes
  }

  /** A fingerprint of all frames so far: their times, lengths, ends, and first 64 bytes. */
  get trace(): number {
    return this.#hash >>> 0
  }

  /** Adds a number to the fingerprint. */
  note(word: number): void {
    this.#hash = Math.imul(this.#hash ^ (word | 0), HASH_PRIME)
  }

  /**
   * The CPU of `from` has handed a frame to its NIC. The network owns `frame` from now on. Returns when the NIC has sent the
   * whole of it.
   */
  send(from: SimulatedHost, to: FrameTarget, frame: Uint8Array): number {
    const { hardware, timeline } = this
    const { length } = frame
    const startUs = Math.max(from.nowUs, from.stalledUntilUs)
    const flow = new Flow(hardware, length, startUs)
    flow.pass(from.nic.sendBus, 0, hardware.busUsPerByte, 0)
    flow.pass(from.nic.sendNic, hardware.nicSendUs, 0, 0)
    flow.pass(from.nic.sendWire, 0, hardware.wireUsPerByte, hardware.headerSize)
    const atSwitchUs = flow.firstUs + hardware.linkUs + hardware.switchUs
    const tailUs = flow.lastUs - flow.firstUs
    timeline.schedule(atSwitchUs, () => this.#route(from, to, frame, tailUs))
    return flow.lastUs
  }

  /** Time that a one-sided transfer of `length` bytes takes, there or back, and the stages of both hosts with it. */
  transferUs(from: SimulatedHost, to: SimulatedHost, length: number): number {
    const { hardware } = this
    const flow = new Flow(hardware, length, from.nowUs)
    flow.pass(from.nic.sendBus, 0, hardware.busUsPerByte, 0)
    flow.pass(from.nic.sendNic, hardware.nicSendUs, 0, 0)
    flow.pass(from.nic.sendWire, 0, hardware.wireUsPerByte, hardware.headerSize)
    flow.delay(hardware.linkUs + hardware.switchUs)
    flow.pass(to.nic.receiveNic, hardware.nicReceiveUs, 0, 0)
    flow.pass(to.nic.receiveBus, 0, hardware.busUsPerByte, 0)
    return flow.lastUs - from.nowUs
  }

  /** Cuts the way between two hosts, in both directions. There is none from a host to itself. */
  partition(a: number, b: number): void {
    if (a !== b) this.#partitions.add(wayOf(a, b))
  }

  heal(a: number, b: number): void {
    this.#partitions.delete(wayOf(a, b))
    const held = this.#held
    this.#held = []
    for (const frame of held) {
      if (this.isCut(frame.from, frame.to.host)) this.#held.push(frame)
      else this.timeline.schedule(0, frame.go)
    }
  }

  /** Ends all faults of the network but the death of NICs, links and processes. */
  healAll(): void {
    Object.assign(this.faults, NO_FAULTS)
    for (let a = 0; a < this.hosts.length; a++) for (let b = 0; b < a; b++) this.heal(a, b)
    for (const host of this.hosts) {
      host.stalledUntilUs = 0
      host.resume()
    }
  }

  isCut(a: SimulatedHost, b: SimulatedHost): boolean {
    return this.#partitions.size > 0 && this.#partitions.has(wayOf(a.number, b.number))
  }

  #route(from: SimulatedHost, to: FrameTarget, frame: Uint8Array, tailUs: number): void {
    const { faults, counters, random } = this
    this.frameCount++
    this.#noteFrame(from, to, frame)
    if (from.isCutOff || to.host.isCutOff) {
      counters.deadEnds++
      return
    }
    if (this.isCut(from, to.host)) {
      counters.partitioned++
      if (this.isReliable) this.#held.push({ from, to, go: () => this.#receive(to, frame, tailUs) })
      return
    }
    // A reliable network has no such faults.
    if (this.isReliable) return this.#receive(to, frame, tailUs)
    if (strikes(random, faults.loss)) {
      counters.lost++
      return
    }
    this.#forward(to, frame, tailUs)
    if (!strikes(random, faults.duplication)) return
    counters.duplicated++
    this.#forward(to, frame, tailUs)
  }

  #forward(to: FrameTarget, frame: Uint8Array, tailUs: number): void {
    const { faults, counters, random } = this
    let arriving = frame
    if (frame.length > 0 && strikes(random, faults.corruption)) {
      counters.corrupted++
      arriving = flipBits(frame, random)
    }
    if (!strikes(random, faults.reordering)) return this.#receive(to, arriving, tailUs)
    counters.reordered++
    const lateUs = random.within(1, faults.reorderUs)
    this.timeline.schedule(this.timeline.nowUs + lateUs, () => this.#receive(to, arriving, tailUs))
  }

  #receive(to: FrameTarget, frame: Uint8Array, tailUs: number): void {
    const { hardware, timeline } = this
    const { host } = to
    const flow = new Flow(hardware, frame.length, timeline.nowUs)
    flow.lastUs += tailUs
    flow.share(host.nic.receiveWire, hardware.wireUsPerByte, hardware.headerSize)
    flow.pass(host.nic.receiveNic, hardware.nicReceiveUs, 0, 0, hardware.matchUs * to.comparedCount)
    flow.pass(host.nic.receiveBus, 0, hardware.busUsPerByte, 0)
    timeline.schedule(flow.lastUs, () => to.deliver(frame))
  }

  #noteFrame(from: SimulatedHost, to: FrameTarget, frame: Uint8Array): void {
    this.note(Math.round(this.timeline.nowUs * 1000))
    this.note((from.number << 8) | to.host.number)
    this.note(frame.length)
    const end = Math.min(frame.length, 64)
    let hash = this.#hash
    for (let i = 0; i < end; i++) hash = Math.imul(hash ^ (frame[i] as number), HASH_PRIME)
    this.#hash = hash
  }
}

/** The packets of one frame on their way: when the first and the last of them leave the stage that they passed last. */
class Flow {
  firstUs: number
  lastUs: number
  readonly #count: number
  readonly #length: number
  readonly #firstLength: number

  constructor({ packetMax }: Hardware, length: number, startUs: number) {
    this.firstUs = startUs
    this.lastUs = startUs
    this.#length = length
    this.#count = Math.max(1, Math.ceil(length / packetMax))
    this.#firstLength = Math.min(length, packetMax)
  }

  /** A stage with a cost per packet, per byte (headers included), and once. */
  pass(stage: Stage, packetUs: number, byteUs: number, headerSize: number, onceUs = 0): void {
    const count = this.#count
    const firstUs = onceUs + packetUs + byteUs * (this.#firstLength + headerSize)
    const allUs = onceUs + count * packetUs + byteUs * (this.#length + count * headerSize)
    const lastLength = this.#length - (count - 1) * this.#firstLength
    const lastUs = packetUs + byteUs * (lastLength + headerSize)
    const startUs = Math.max(this.firstUs, stage.freeAtUs)
    this.firstUs = startUs + firstUs
    this.lastUs = Math.max(startUs + allUs, count === 1 ? 0 : this.lastUs + lastUs)
    stage.freeAtUs = this.lastUs
  }

  /** A link that packets share with those of other senders, and which they cut through if it is free. */
  share(stage: Stage, byteUs: number, headerSize: number): void {
    const busyUs = byteUs * (this.#length + this.#count * headerSize)
    const lateUs = Math.max(0, stage.freeAtUs - (this.lastUs - busyUs))
    this.firstUs += lateUs
    this.lastUs += lateUs
    stage.freeAtUs = this.lastUs
  }

  delay(us: number): void {
    this.firstUs += us
    this.lastUs += us
  }
}

function wayOf(a: number, b: number): string {
  return a < b ? `${a}-${b}` : `${b}-${a}`
}

function strikes(random: FaultRandom, rate: number): boolean {
  return rate > 0 && random.chance(rate)
}

/** Each step forward is at most a quarter of the frame, so that no bit is flipped back. */
function flipBits(frame: Uint8Array, random: FaultRandom): Uint8Array {
  const bytes = new Uint8Array(frame)
  const bitCount = 8 * bytes.length
  let bit = random.within(0, bitCount - 1)
  for (let flips = random.within(1, FLIPS_MAX); flips > 0; flips--) {
    bytes[bit >> 3] = (bytes[bit >> 3] as number) ^ (1 << (bit & 7))
    bit = (bit + random.within(1, bitCount / FLIPS_MAX)) % bitCount
  }
  return bytes
}
