/**
 * The object in `socket._handle` of a fast socket: a native stream (JSStream) that looks like Node's own TCP or pipe
 * handle. It has the same own keys, and the same prototypes with the same names in the same order: code that prints,
 * copies or compares sockets sees no difference.
 *
 *   handle -> TCP -> LibuvStreamWrap -> HandleWrap -> AsyncWrap -> Object
 *
 * Its behaviour is in its side (native-side.ts, fast-handle.ts), which a private field refers to. Node's `JSStream`
 * calls five methods by name; they are on the last prototype, and not enumerable.
 */
import { makeHidden } from '../../nic/own-resources.ts'
import {
  type ConnectRequest,
  type NativeStream,
  type NodeInternals,
  nodeInternals,
  type ReadListener,
  type SocketName,
  type TcpHandle,
} from '../host/node-internals.ts'
import { UV_EBADF, UV_EBUSY, UV_EINVAL, UV_ENOTSUP } from '../host/socket-errors.ts'
import type { FastHandle } from './fast-handle-contract.ts'

/** A write request of native code. */
type WriteRequest = object & { readonly oncomplete?: unknown }

/** The handle's side, as the handle calls it. */
export interface HandleSide
  extends Pick<TcpHandle, 'connect6' | 'bind' | 'bind6' | 'getsockname' | 'getpeername'> {
  onread: ReadListener | undefined
  readonly writeQueueSize: number
  readonly readCount: number
  readonly writtenCount: number
  readonly isClosed: boolean
  /** Native code is about to be attached. */
  noteNative(): void
  /** The native stream has read for JavaScript. */
  handleNativeRead(arrayBuffer: ArrayBuffer | undefined): unknown
  connect(request: ConnectRequest, address: string, port?: number): number
  setNoDelay(isOn: boolean): number
  setKeepAlive(isOn: boolean, delayS: number): number
  setTypeOfService(value: number): number
  getTypeOfService(): number
  hasBegun(): boolean
  readonly asyncId: number
  /** The handle serves another request of the program: its callbacks run in the current context. */
  renewScope(): void
  reset(callback: () => void): number
  readStart(): number
  readStop(): number
  shutdown(request: object): number
  useUserBuffer(bytes: Uint8Array): void
  handleNativeShutdown(request: object): number
  handleNativeWrite(request: WriteRequest, buffers: Buffer[]): number
  close(callback?: () => void): void
  hasRef(): boolean
  ref(): void
  unref(): void
}

/** The handle, as its side calls it. */
export type ShownHandle = NativeStream & { reading: boolean }

interface SocketHandles {
  create(side: HandleSide, isPipe: boolean): ShownHandle
  sideOf(handle: unknown): HandleSide | undefined
  giveSide(handle: ShownHandle, side: HandleSide): void
}

let native: NativeStream
let handles: SocketHandles | undefined

/** Call once this Node is known to have all parts. */
export function prepareHandles(internals: NodeInternals): void {
  native = internals.JsStream.prototype
  if (handles !== undefined) return
  handles = defineHandles(internals)
}

/** The native methods of `JSStream`, for our side. The prototypes of a handle do not show them. */
export function nativeMethods(): NativeStream {
  return native
}

export function createHandle(side: HandleSide, isPipe: boolean): ShownHandle {
  if (handles === undefined) prepareHandles(nodeInternals() as NodeInternals)
  return (handles as SocketHandles).create(side, isPipe)
}

/** From now on `handle` behaves as `side` says. */
export function takeHandle(side: HandleSide, handle: ShownHandle): ShownHandle {
  handles?.giveSide(handle, side)
  return handle
}

/** The fast handle behind `socket._handle`; undefined for other handles. */
export function fastOf(handle: unknown): FastHandle | undefined {
  return handles?.sideOf(handle) as FastHandle | undefined
}

function defineHandles({ JsStream, Tcp, Pipe: NativePipe }: NodeInternals): SocketHandles {
  /** The callback of the native stream's JavaScript listener. */
  const handleNativeRead = function (this: object, arrayBuffer: ArrayBuffer | undefined): unknown {
    return SocketHandle.sideOf(this)?.handleNativeRead(arrayBuffer)
  }

  /** The members; `imitate` puts each one on the prototype where Node's own handle has it. */
  class SocketHandle extends JsStream {
    #side: HandleSide

    constructor(side: HandleSide) {
      super()
      this.#side = side
      super.onread = handleNativeRead
    }

    static giveSide(handle: ShownHandle, side: HandleSide): void {
      ;(handle as unknown as SocketHandle).#side = side
    }

    static sideOf(handle: unknown): HandleSide | undefined {
      return typeof handle === 'object' && handle !== null && #side in handle ? handle.#side : undefined
    }

    open(): number {
      return SocketHandle.sideOf(this)?.hasBegun() ? UV_EBUSY : UV_ENOTSUP
    }

    listen(): number {
      return SocketHandle.sideOf(this)?.hasBegun() ? UV_EINVAL : UV_ENOTSUP
    }

    fchmod(): number {
      return UV_ENOTSUP
    }

    setBlocking(): number {
      return UV_ENOTSUP
    }

    hasPendingRead(): boolean {
      return false
    }

    bind(address: string, port: number): number {
      return SocketHandle.sideOf(this)?.bind(address, port) ?? UV_EBADF
    }

    bind6(address: string, port: number, flags?: number): number {
      return SocketHandle.sideOf(this)?.bind6(address, port, flags) ?? UV_EBADF
    }

    /** Connects to a unix path if there is no port. */
    connect(request: ConnectRequest, address: string, port?: number): number {
      return SocketHandle.sideOf(this)?.connect(request, address, port) ?? UV_EBADF
    }

    connect6(request: ConnectRequest, address: string, port: number): number {
      return SocketHandle.sideOf(this)?.connect6(request, address, port) ?? UV_EBADF
    }

    getsockname(out: SocketName): number {
      return SocketHandle.sideOf(this)?.getsockname(out) ?? UV_EBADF
    }

    getpeername(out: SocketName): number {
      return SocketHandle.sideOf(this)?.getpeername(out) ?? UV_EBADF
    }

    setNoDelay(isOn: boolean): number {
      return SocketHandle.sideOf(this)?.setNoDelay(isOn) ?? UV_EBADF
    }

    setKeepAlive(isOn: boolean, delayS: number): number {
      return SocketHandle.sideOf(this)?.setKeepAlive(isOn, delayS) ?? UV_EBADF
    }

    setTypeOfService(value: number): number {
      return SocketHandle.sideOf(this)?.setTypeOfService(value) ?? UV_EBADF
    }

    getTypeOfService(): number {
      return SocketHandle.sideOf(this)?.getTypeOfService() ?? UV_EBADF
    }

    /** The id of the context in which callbacks run: hooks of the program know no other. */
    getAsyncId(): number {
      return SocketHandle.sideOf(this)?.asyncId ?? -1
    }

    asyncReset(): void {
      SocketHandle.sideOf(this)?.renewScope()
    }

    reset(callback: () => void): number {
      return SocketHandle.sideOf(this)?.reset(callback) ?? UV_EBADF
    }

    override get onread(): ReadListener | undefined {
      return SocketHandle.sideOf(this)?.onread
    }

    override set onread(listener: ReadListener | undefined) {
      const side = SocketHandle.sideOf(this)
      if (side !== undefined) side.onread = listener
    }

    get writeQueueSize(): number {
      return SocketHandle.sideOf(this)?.writeQueueSize ?? 0
    }

    /** A fast handle has no descriptor. */
    get fd(): number {
      return -1
    }

    override get _externalStream(): unknown {
      return SocketHandle.sideOf(this) && super._externalStream
    }

    override get bytesRead(): number {
      return SocketHandle.sideOf(this)?.readCount ?? 0
    }

    override get bytesWritten(): number {
      return SocketHandle.sideOf(this)?.writtenCount ?? 0
    }

    override readStart(): number {
      return SocketHandle.sideOf(this)?.readStart() ?? UV_EBADF
    }

    override readStop(): number {
      return SocketHandle.sideOf(this)?.readStop() ?? UV_EBADF
    }

    override shutdown(request: object): number {
      return SocketHandle.sideOf(this)?.shutdown(request) ?? UV_EBADF
    }

    override useUserBuffer(bytes: Uint8Array): number {
      SocketHandle.sideOf(this)?.useUserBuffer(bytes)
      return 0
    }

    /** Native code is attached only after a read of this. */
    override get isStreamBase(): boolean {
      SocketHandle.sideOf(this)?.noteNative()
      return true
    }

    close(callback?: () => void): void {
      SocketHandle.sideOf(this)?.close(callback)
    }

    hasRef(): boolean {
      return SocketHandle.sideOf(this)?.hasRef() ?? false
    }

    ref(): void {
      SocketHandle.sideOf(this)?.ref()
    }

    unref(): void {
      SocketHandle.sideOf(this)?.unref()
    }
  }

  /** The methods that `JSStream` calls by name. */
  class NativeCalls {
    isClosing(): boolean {
      return SocketHandle.sideOf(this)?.isClosed ?? true
    }

    onreadstart(): number {
      const side = SocketHandle.sideOf(this)
      side?.noteNative()
      return side?.readStart() ?? UV_EBADF
    }

    onreadstop(): number {
      return SocketHandle.sideOf(this)?.readStop() ?? UV_EBADF
    }

    onshutdown(request: object): number {
      return SocketHandle.sideOf(this)?.handleNativeShutdown(request) ?? UV_EBADF
    }

    onwrite(request: WriteRequest, buffers: Buffer[]): number {
      return SocketHandle.sideOf(this)?.handleNativeWrite(request, buffers) ?? UV_EBADF
    }
  }

  // Classes with the names of Node's own.
  const TcpHandle = class TCP extends SocketHandle {
    declare reading: boolean
    declare onconnection: null

    // biome-ignore lint/correctness/noUnreachableSuper: another object is returned then.
    constructor(side: HandleSide) {
      // A program may call the constructor of a handle: it gets Node's own handle.
      // biome-ignore lint/correctness/noConstructorReturn: the object of Node's own class.
      if (typeof side === 'number') return new Tcp(side) as never
      super(side)
      this.reading = false
      this.onconnection = null
    }
  }
  const PipeHandle = class Pipe extends SocketHandle {
    declare reading: boolean

    // biome-ignore lint/correctness/noUnreachableSuper: as above.
    constructor(side: HandleSide) {
      // biome-ignore lint/correctness/noConstructorReturn: as above.
      if (typeof side === 'number') return new NativePipe(side) as never
      super(side)
    }
  }
  for (const [Face, Model] of [
    [TcpHandle, Tcp],
    [PipeHandle, NativePipe],
  ] as const)
    imitate(Face, Model, SocketHandle.prototype, NativeCalls.prototype)

  return {
    // The side has an async resource of the same type as Node's own handle.
    create: (side, isPipe) => makeHidden(() => (isPipe ? new PipeHandle(side) : new TcpHandle(side))),
    sideOf: SocketHandle.sideOf,
    giveSide: SocketHandle.giveSide,
  }
}

/** Gives `Face` prototypes like those of `Model`: each member is on the prototype where Node's own handle has it. */
function imitate(
  Face: { readonly prototype: object },
  Model: { readonly prototype: object },
  ours: object,
  hidden: object,
): void {
  let level = Face.prototype
  Reflect.deleteProperty(level, 'constructor')
  for (let model = Model.prototype; ; ) {
    for (const key of Reflect.ownKeys(model)) {
      const shown = Object.getOwnPropertyDescriptor(model, key) as PropertyDescriptor
      const { enumerable = false, configurable = false } = shown
      Object.defineProperty(level, key, { ...memberLike(key, shown, ours), enumerable, configurable })
    }
    if (model === Model.prototype) Object.defineProperty(level, 'constructor', { value: Face })
    const next = Object.getPrototypeOf(model)
    const isLast = next === null || next === Object.prototype
    const below = isLast ? next : {}
    if (isLast) Object.defineProperties(level, hiddenMembers(hidden))
    Object.setPrototypeOf(level, below)
    if (isLast) return
    level = below
    model = next
  }
}

/** Our member, or the native class's; for members of later versions of Node, one that refuses. */
function memberLike(key: string | symbol, shown: PropertyDescriptor, ours: object): PropertyDescriptor {
  // JavaScript of Node's that works on any object.
  if (key === 'owner' || key === 'constructor') return shown
  for (let at = ours; at !== Object.prototype && at !== null; at = Object.getPrototypeOf(at)) {
    const found = Object.getOwnPropertyDescriptor(at, key)
    if (found !== undefined) return found
  }
  if (shown.get !== undefined) return { get: () => undefined }
  return typeof shown.value === 'function' ? { value: () => UV_ENOTSUP, writable: true } : shown
}

function hiddenMembers(members: object): PropertyDescriptorMap {
  const { constructor: _, ...rest } = Object.getOwnPropertyDescriptors(members) as PropertyDescriptorMap
  return rest
}
