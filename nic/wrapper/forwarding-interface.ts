import type { NicError } from '../errors.ts'
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
import type { Status } from '../status.ts'

/** An interface over another one that changes nothing: methods that a wrapper does not override are forwarded. */
export abstract class ForwardingInterface implements VirtualInterface {
  readonly driver: string
  readonly capabilities: Capabilities
  protected readonly inner: VirtualInterface

  /** The wrapper owns `inner` from now on, its doorbell included. */
  constructor(inner: VirtualInterface, driver: string, capabilities: Capabilities) {
    this.inner = inner
    this.driver = driver
    this.capabilities = capabilities
  }

  get state(): InterfaceState {
    return this.inner.state
  }

  get failure(): NicError | undefined {
    return this.inner.failure
  }

  get sendBytes(): Uint8Array {
    return this.inner.sendBytes
  }

  get sendWords(): Int32Array {
    return this.inner.sendWords
  }

  get receiveWords(): Int32Array {
    return this.inner.receiveWords
  }

  reserve(length: number): number {
    return this.inner.reserve(length)
  }

  commit(length: number): void {
    this.inner.commit(length)
  }

  cancel(): void {
    this.inner.cancel()
  }

  hasRoom(length: number): boolean {
    return this.inner.hasRoom(length)
  }

  poll(sink: FrameSink, limit: number): number {
    return this.inner.poll(sink, limit)
  }

  showWord(word: number): void {
    this.inner.showWord?.(word)
  }

  get shownWord(): number | undefined {
    return this.inner.shownWord
  }

  expectEnd(): void {
    this.inner.expectEnd?.()
  }

  get hasPeer(): boolean | undefined {
    return this.inner.hasPeer
  }

  watchPeer(listener: () => void): void {
    this.inner.watchPeer?.(listener)
  }

  cutOff(): void {
    this.inner.cutOff?.()
  }

  get isCutOff(): boolean | undefined {
    return this.inner.isCutOff
  }

  arm(forRoom: number): boolean {
    return this.inner.arm(forRoom)
  }

  disarm(): void {
    this.inner.disarm()
  }

  setDoorbell(listener: DoorbellAnswer): void {
    this.inner.setDoorbell(listener)
  }

  ref(): void {
    this.inner.ref()
  }

  unref(): void {
    this.inner.unref()
  }

  register(bytes: Uint8Array, access: Access): Registration {
    return this.inner.register(bytes, access)
  }

  importKey(key: Uint8Array): RemoteMemory {
    return this.inner.importKey(key)
  }

  rdmaRead(
    local: Registration,
    localOffset: number,
    remote: RemoteMemory,
    remoteOffset: number,
    length: number,
    workId: number,
  ): Status {
    return this.inner.rdmaRead(local, localOffset, remote, remoteOffset, length, workId)
  }

  rdmaWrite(
    local: Registration,
    localOffset: number,
    remote: RemoteMemory,
    remoteOffset: number,
    length: number,
    workId: number,
  ): Status {
    return this.inner.rdmaWrite(local, localOffset, remote, remoteOffset, length, workId)
  }

  pollCompletions(sink: CompletionSink, limit: number): number {
    return this.inner.pollCompletions(sink, limit)
  }

  close(): void {
    this.inner.close()
  }
}
