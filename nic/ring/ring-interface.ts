/** Base of the virtual interfaces over a pair of rings. shm and loopback differ in memory and doorbell. */
import { CompletionQueue } from '../completions.ts'
import { isWithin } from '../copy.ts'
import { NicError } from '../errors.ts'
import type {
  Access,
  Capabilities,
  CompletionSink,
  DoorbellAnswer,
  FrameSink,
  InterfaceState,
  Registration,
  RemoteMemory,
  VirtualInterface,
} from '../nic.ts'
import { BROKEN, CLOSED, NO_RESOURCE, OK, OUT_OF_BOUNDS, type Status, UNSUPPORTED } from '../status.ts'
import type { RingConsumer } from './ring-consumer.ts'
import type { OpenOverflow } from './ring-layout.ts'
import type { RingProducer } from './ring-producer.ts'

/** Limit of one-sided operations whose completion is not polled yet. */
const COMPLETIONS_MAX = 256

export abstract class RingInterface implements VirtualInterface {
  abstract readonly driver: string
  readonly capabilities: Capabilities
  state: InterfaceState = 'open'
  failure: NicError | undefined
  protected readonly producer: RingProducer
  protected readonly consumer: RingConsumer
  private readonly completions = new CompletionQueue(COMPLETIONS_MAX)

  constructor(producer: RingProducer, consumer: RingConsumer, capabilities: Capabilities) {
    this.producer = producer
    this.consumer = consumer
    this.capabilities = capabilities
  }

  get sendBytes(): Uint8Array {
    return this.producer.bytes
  }

  get sendWords(): Int32Array {
    return this.producer.words
  }

  get receiveWords(): Int32Array {
    return this.consumer.words
  }

  reserve(length: number): number {
    const offset = this.producer.reserve(length)
    return offset === BROKEN ? this.break(this.producer.violation) : offset
  }

  commit(length: number): void {
    if (this.producer.commit(length)) this.wakePeer()
  }

  /** `reserve` publishes nothing, so there is nothing to undo. */
  cancel(): void {}

  hasRoom(length: number): boolean {
    return this.producer.hasRoom(length) || this.noRoom()
  }

  poll(sink: FrameSink, limit: number): number {
    if (this.state === 'broken') return BROKEN
    try {
      const count = this.consumer.poll(sink, limit)
      return count === BROKEN ? this.break(this.consumer.violation) : count
    } finally {
      if (this.consumer.producerWaits) this.wakeProducer()
    }
  }

  useOverflow(): void {
    const open = this.overflowToPeer()
    if (open !== undefined) this.producer.useOverflow(open)
  }

  showWord(word: number): void {
    this.producer.showWord(word)
  }

  get shownWord(): number {
    return this.consumer.shownWord
  }

  expectEnd(): void {
    this.consumer.expectEnd()
  }

  cutOff(): void {
    this.producer.cutOff()
  }

  get isCutOff(): boolean {
    return this.consumer.isCutOff
  }

  arm(forRoom: number): boolean {
    if (this.state !== 'open') return false
    const isArmed = this.consumer.arm()
    if (this.consumer.producerWaits) this.wakeProducer()
    if (!isArmed) return false
    if (forRoom === 0 || this.producer.armForRoom(forRoom)) return true
    this.noRoom()
    this.consumer.disarm()
    return false
  }

  disarm(): void {
    this.consumer.disarm()
    this.producer.disarm()
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
    const refusal = this.checkTransfer(local, localOffset, remote, remoteOffset, length)
    if (refusal !== OK) return refusal
    this.completions.push(workId, this.readRemote(local, localOffset, remote, remoteOffset, length))
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
    const refusal = this.checkTransfer(local, localOffset, remote, remoteOffset, length)
    if (refusal !== OK) return refusal
    this.completions.push(workId, this.writeRemote(local, localOffset, remote, remoteOffset, length))
    return OK
  }

  pollCompletions(sink: CompletionSink, limit: number): number {
    return this.completions.poll(sink, limit)
  }

  close(): void {
    if (this.state === 'closed') return
    this.state = 'closed'
    this.producer.close()
    this.consumer.close()
    this.release()
  }

  /** Opens the overflow ring of the sending direction; undefined if the driver has none. */
  protected overflowToPeer(): OpenOverflow | undefined {
    return undefined
  }

  abstract setDoorbell(listener: DoorbellAnswer): void
  abstract ref(): void
  abstract unref(): void
  abstract register(bytes: Uint8Array, access: Access): Registration
  abstract importKey(key: Uint8Array): RemoteMemory
  protected abstract wakePeer(): void
  protected abstract release(): void
  protected abstract readRemote(
    local: Registration,
    localOffset: number,
    remote: RemoteMemory,
    remoteOffset: number,
    length: number,
  ): Status
  protected abstract writeRemote(
    local: Registration,
    localOffset: number,
    remote: RemoteMemory,
    remoteOffset: number,
    length: number,
  ): Status

  private checkTransfer(
    local: Registration,
    localOffset: number,
    remote: RemoteMemory,
    remoteOffset: number,
    length: number,
  ): Status {
    if (this.state !== 'open') return this.state === 'broken' ? BROKEN : CLOSED
    if (!isWithin(localOffset, length, local.bytes.length)) return OUT_OF_BOUNDS
    if (!isWithin(remoteOffset, length, remote.length)) return OUT_OF_BOUNDS
    return this.completions.isFull ? NO_RESOURCE : OK
  }

  /** Rings the peer, whose producer waits for the room that this side has just released. */
  private wakeProducer(): void {
    this.consumer.producerWaits = false
    if (this.state === 'open') this.wakePeer()
  }

  private noRoom(): false {
    if (this.producer.violation !== undefined) this.break(this.producer.violation)
    return false
  }

  private break(violation: string | undefined): typeof BROKEN {
    if (this.state === 'open') {
      this.state = 'broken'
      this.failure = new NicError('ERR_NIC_PROTOCOL_VIOLATION', `ring: ${violation ?? 'unusable'}`)
    }
    return BROKEN
  }
}
