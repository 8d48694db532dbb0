import type {
  Access,
  CompletionSink,
  DoorbellAnswer,
  FrameSink,
  Registration,
  RemoteMemory,
  VirtualInterface,
} from '../nic.ts'
import { performance } from '../performance.ts'
import type { Status } from '../status.ts'
import { ForwardingInterface } from '../wrapper/forwarding-interface.ts'

/** Bytes of a frame that a line shows. */
const SHOWN_MAX = 32
const TIME_WIDTH = 10

/** By their negated values, as in status.ts. */
const STATUS_NAMES = [
  'OK',
  'NO_RESOURCE',
  'NO_CREDIT',
  'CLOSED',
  'BROKEN',
  'UNSUPPORTED',
  'OUT_OF_BOUNDS',
] as const

export type WriteLine = (line: string) => void

/** What a frame means to the layer above; the frame lies in `bytes[offset … offset + length)`. */
export type DescribeFrame = (bytes: Uint8Array, offset: number, length: number) => string

/** Logs one line for each operation on `inner`, and changes nothing. */
export class TraceInterface extends ForwardingInterface {
  readonly #label: string
  readonly #writeLine: WriteLine
  readonly #describe: DescribeFrame | undefined
  readonly #sink: TracingSink
  readonly #completions: TracingCompletions
  #reservedAt = 0
  #isFailureTraced = false

  constructor(inner: VirtualInterface, label: string, write: WriteLine, describe?: DescribeFrame) {
    super(inner, `trace:${inner.driver}`, inner.capabilities)
    this.#label = label
    this.#writeLine = write
    this.#describe = describe
    this.#sink = new TracingSink(this)
    this.#completions = new TracingCompletions(this)
    inner.setDoorbell(() => this.#write('doorbell rung'))
  }

  override reserve(length: number): number {
    const at = this.inner.reserve(length)
    if (at < 0) this.#write(`-> ${length} bytes refused: ${nameOf(at)}`)
    this.#reservedAt = at
    return at
  }

  override commit(length: number): void {
    this.traceFrame('->', this.inner.sendBytes, this.#reservedAt, length)
    this.inner.commit(length)
  }

  override cancel(): void {
    this.#write('-> cancelled')
    this.inner.cancel()
  }

  override poll(sink: FrameSink, limit: number): number {
    const outer = this.#sink.target
    this.#sink.target = sink
    try {
      return this.inner.poll(this.#sink, limit)
    } finally {
      this.#sink.target = outer
      this.#traceFailure()
    }
  }

  override arm(forRoom: number): boolean {
    const isArmed = this.inner.arm(forRoom)
    const room = forRoom > 0 ? `, for ${forRoom} bytes of room` : ''
    this.#write(`doorbell ${isArmed ? 'armed' : 'not armed: look again'}${room}`)
    return isArmed
  }

  override disarm(): void {
    this.#write('doorbell disarmed')
    this.inner.disarm()
  }

  override setDoorbell(listener: DoorbellAnswer): void {
    this.inner.setDoorbell(isIo => {
      this.#write('doorbell rung')
      listener(isIo)
    })
  }

  override register(bytes: Uint8Array, access: Access): Registration {
    const registration = this.inner.register(bytes, access)
    this.#write(`registered ${bytes.length} bytes, ${rightsOf(access)}`)
    return registration
  }

  override importKey(key: Uint8Array): RemoteMemory {
    const memory = this.inner.importKey(key)
    this.#write(`imported a key of ${memory.length} bytes, ${rightsOf(memory.access)}`)
    return memory
  }

  override rdmaRead(
    local: Registration,
    localOffset: number,
    remote: RemoteMemory,
    remoteOffset: number,
    length: number,
    workId: number,
  ): Status {
    const status = this.inner.rdmaRead(local, localOffset, remote, remoteOffset, length, workId)
    this.#write(`rdmaRead ${workId}: ${length} bytes, ${localOffset} <- ${remoteOffset}: ${nameOf(status)}`)
    return status
  }

  override rdmaWrite(
    local: Registration,
    localOffset: number,
    remote: RemoteMemory,
    remoteOffset: number,
    length: number,
    workId: number,
  ): Status {
    const status = this.inner.rdmaWrite(local, localOffset, remote, remoteOffset, length, workId)
    this.#write(`rdmaWrite ${workId}: ${length} bytes, ${localOffset} -> ${remoteOffset}: ${nameOf(status)}`)
    return status
  }

  override pollCompletions(sink: CompletionSink, limit: number): number {
    const outer = this.#completions.target
    this.#completions.target = sink
    try {
      return this.inner.pollCompletions(this.#completions, limit)
    } finally {
      this.#completions.target = outer
    }
  }

  override close(): void {
    this.#write('closed')
    this.inner.close()
  }

  /** Lines of the sinks. */
  traceFrame(direction: '->' | '<-', bytes: Uint8Array, offset: number, length: number): void {
    const words = hexWords(bytes, offset, Math.min(length, SHOWN_MAX))
    const more = length > SHOWN_MAX ? ' ...' : ''
    const meaning = this.#describe === undefined ? '' : `  ${this.#describe(bytes, offset, length)}`
    this.#write(`${direction} ${length} bytes  ${words}${more}${meaning}`)
  }

  traceCompletion(workId: number, status: Status): void {
    this.#write(`completed ${workId}: ${nameOf(status)}`)
  }

  #traceFailure(): void {
    if (this.#isFailureTraced || this.inner.state !== 'broken') return
    this.#isFailureTraced = true
    this.#write(`broken: ${this.inner.failure?.message ?? 'unknown'}`)
  }

  #write(what: string): void {
    this.#writeLine(`${performance.now().toFixed(3).padStart(TIME_WIDTH)} ms  ${this.#label}  ${what}`)
  }
}

class TracingSink implements FrameSink {
  target: FrameSink | undefined
  readonly #end: TraceInterface

  constructor(end: TraceInterface) {
    this.#end = end
  }

  handleFrame(bytes: Uint8Array, offset: number, length: number): void {
    this.#end.traceFrame('<-', bytes, offset, length)
    this.target?.handleFrame(bytes, offset, length)
  }
}

class TracingCompletions implements CompletionSink {
  target: CompletionSink | undefined
  readonly #end: TraceInterface

  constructor(end: TraceInterface) {
    this.#end = end
  }

  handleCompletion(workId: number, status: Status): void {
    this.#end.traceCompletion(workId, status)
    this.target?.handleCompletion(workId, status)
  }
}

/** The bytes in their order, four to a word. */
function hexWords(bytes: Uint8Array, offset: number, length: number): string {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset + offset, length).toString('hex')
  return hex.replace(/.{8}(?=.)/g, '$& ')
}

function nameOf(status: number): string {
  return status >= 0 ? 'OK' : (STATUS_NAMES[-status] ?? String(status))
}

function rightsOf(access: Access): string {
  const rights = [access.remoteRead && 'read', access.remoteWrite && 'write'].filter(Boolean)
  return rights.length === 0 ? 'local only' : `remote ${rights.join(' and ')}`
}
