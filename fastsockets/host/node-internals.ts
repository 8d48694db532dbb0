/**
 * The internal parts of Node that this package uses. Each is found at run time and checked before use. If one is
 * missing, all connections stay on TCP (`NODE_INTERNALS`).
 *
 * - `JSStream`: a native StreamBase whose bytes JavaScript provides. Under a `net.Socket`, tls, http and http2 attach
 *   to it natively, as they do to a TCP handle. Reached by `process.binding`, or through a TLSSocket over a Duplex.
 * - `kReinitializeHandle`: how Node itself gives a connecting socket another handle.
 * - `process._tickCallback`: runs next ticks and microtasks, as Node does between two callbacks from libuv.
 * - `process._fatalException`: Node calls it when a callback from libuv throws.
 */
import { createRequire } from 'node:module'
import net from 'node:net'
import { Duplex } from 'node:stream'
import type { SecureContext } from 'node:tls'
import { queueMicrotask } from '../../nic/real-time.ts'
import { tls } from './node-tls.ts'
import { processBinding } from './process-binding.ts'

export interface ConnectRequest {
  oncomplete:
    | ((
        status: number,
        handle: object,
        request: ConnectRequest,
        readable: boolean,
        writable: boolean,
      ) => void)
    | undefined
  readonly addressType?: number
}

export interface SocketName {
  address?: string
  port?: number
  family?: string
}

/** The members of a TCP handle that this package uses. */
export interface TcpHandle {
  connect(request: ConnectRequest, address: string, port: number): number
  connect6(request: ConnectRequest, address: string, port: number): number
  bind(address: string, port: number): number
  bind6(address: string, port: number, flags?: number): number
  getsockname(out: SocketName): number
  getpeername(out: SocketName): number
  listen(backlog: number): number
  /** -1 before bind; undefined for the stand-in handle of a cluster worker. */
  readonly fd?: number
  /** Takes over a descriptor. */
  open(fd: number): number
  close(callback?: () => void): void
  unref(): void
  /** Undefined for the stand-in handle of a cluster worker. */
  getAsyncId?(): number
  onconnection?: (status: number, handle: object) => void
}

/** The handle of a unix socket; only `connect` differs from a TCP handle. */
export type PipeHandle = TcpHandle & { connect(request: ConnectRequest, path: string): number }

/** The members of `JSStream` that this package uses; see docs/decisions/0002-handle-not-subclass.md. */
export declare class NativeStream {
  get onread(): ReadListener | undefined
  set onread(listener: ReadListener | undefined)
  get isStreamBase(): boolean
  get _externalStream(): unknown
  get bytesRead(): number
  get bytesWritten(): number
  readStart(): number
  readStop(): number
  shutdown(request: object): number
  readBuffer(bytes: Uint8Array): void
  emitEOF(): void
  finishWrite(request: object, status: number): void
  finishShutdown(request: object, status: number): void
  useUserBuffer(bytes: Uint8Array): void
}

// biome-ignore lint/suspicious/noExplicitAny: Node calls it with the handle, whatever class that has.
export type ReadListener = (this: any, arrayBuffer: ArrayBuffer | undefined) => unknown

export type JsStreamClass = typeof NativeStream

/**
 * Completes a request as native code does: an `oncomplete` that the program replaced by a non-function is not called.
 */
export function complete(request: { readonly oncomplete?: unknown }, ...args: readonly unknown[]): void {
  callIfFunction(request.oncomplete, request, args)
}

/** Native code calls a callback only if it is a function. */
export function callIfFunction(callback: unknown, self: unknown, args: readonly unknown[] = []): void {
  if (typeof callback === 'function') Reflect.apply(callback, self, args)
}

/** Node's own state of a `Writable`. */
export interface WritableState {
  /** `writableLength` */
  length: number
  /** What the write that is under way takes off `length` once it is complete. */
  writelen: number
  needDrain: boolean
  ending: boolean
  readonly errored: Error | null
  /** The end is out, or about to be. */
  readonly finalCalled: boolean
}

/** Socket members that @types/node does not know. */
export interface SocketInternals {
  _handle: object | null
  /** The cached result of `_getsockname`. */
  _sockname?: SocketName | null
  /** Data written before the socket was connected. */
  _pendingData: unknown
  _pendingEncoding: string
  /** `ended`: the end has been read, though the program may not have seen it. */
  readonly _readableState: { readonly ended: boolean; reading: boolean }
  readonly _writableState: WritableState
  _unrefTimer(): void
  _getpeername(): SocketName
  _getsockname(): SocketName
  _reset(): void
  _writeGeneric(
    writev: boolean,
    data: unknown,
    encoding: string,
    callback: (error?: Error | null) => void,
  ): unknown
}

export interface ServerInternals {
  _handle: (TcpHandle & object) | null
  _pipeName?: string
  /** The number of open connections. */
  readonly _connections: number
  _listen2(...args: unknown[]): void
}

export interface NodeInternals {
  readonly JsStream: JsStreamClass
  readonly Tcp: new (type: number) => TcpHandle
  readonly Pipe: new (type: number) => PipeHandle
  readonly createTcp: () => TcpHandle
  readonly createPipe: () => PipeHandle
  readonly isTcp: (handle: unknown) => handle is TcpHandle
  readonly isPipe: (handle: unknown) => handle is PipeHandle
  readonly reinitialize: symbol
  /** Never read: keeps the probe objects alive; see `lures` below. */
  readonly lures: readonly unknown[]
}

/**
 * An `import` of `node:process` would read all its members; the getter of `stdin` makes a socket. The copy saves the
 * getter call of the global.
 */
const { process } = globalThis
const { _tickCallback: tickCallback } = process as unknown as { _tickCallback?: () => void }

let found: NodeInternals | undefined | null = null

/** Undefined if this version of Node lacks one of the parts. */
export function nodeInternals(): NodeInternals | undefined {
  if (found === null) found = look()
  return found
}

const symbols = new Map<string, symbol>()

/** The key of a symbol member of Node, found by its description on an `object` that has the member. */
function symbolOf(object: object, description: string): symbol | undefined {
  const known = symbols.get(description)
  if (known !== undefined) return known
  const symbol = Object.getOwnPropertySymbols(object).find(it => it.description === description)
  if (symbol !== undefined) symbols.set(description, symbol)
  return symbol
}

/** The socket or server to which `handle` belongs. */
export function ownerOf(handle: object): object | undefined {
  const symbol = symbolOf(handle, 'owner_symbol')
  return symbol === undefined ? undefined : (handle as Record<symbol, object | undefined>)[symbol]
}

/** Removes the owner of a closed handle. */
export function disown(handle: object): void {
  const symbol = symbolOf(handle, 'owner_symbol')
  if (symbol !== undefined) (handle as Record<symbol, object | null>)[symbol] = null
}

/** True if the socket was made with a `BoundSocket`. net.js never clears this mark. */
export function hasBoundSource(socket: object): boolean {
  const symbol = symbolOf(socket, 'kBoundSource')
  return symbol !== undefined && (socket as Record<symbol, unknown>)[symbol] === true
}

/** Makes `handle` belong to the owner of `model`. */
export function copyOwner(model: object, handle: object): void {
  const symbol = symbolOf(model, 'owner_symbol')
  if (symbol !== undefined) Object.assign(handle, { [symbol]: ownerOf(model) })
}

/**
 * Sets the queue size at the start of the last write. At a time-out net.js compares it, to see if the write
 * progresses.
 */
export function noteQueueSize(socket: object, size: number): void {
  const symbol = symbolOf(socket, 'lastWriteQueueSize')
  if (symbol !== undefined) Object.assign(socket, { [symbol]: size })
}

interface Options {
  setNoDelay?(isOn: boolean): void
  setKeepAlive?(isOn: boolean, delayS: unknown): void
}

/** Applies the options of `socket` to `handle`, which replaces the handle that they were set on. */
export function repeatOptions(socket: object, handle: Options): void {
  const has = (description: string): unknown =>
    (socket as Record<symbol, unknown>)[symbolOf(socket, description) as symbol]
  if (has('kSetNoDelay')) handle.setNoDelay?.(true)
  if (has('kSetKeepAlive')) handle.setKeepAlive?.(true, has('kSetKeepAliveInitialDelay'))
}

/** Removes this connect from the entries of PerformanceObserver. */
export function hideConnect(socket: object): void {
  const symbol = symbolOf(socket, 'kPerfHooksNetConnectContext')
  if (symbol !== undefined) Object.assign(socket, { [symbol]: null })
}

/**
 * Runs `exchange`, which replaces the socket's handle, without a second call of the program's `onread.buffer` function.
 * net.js calls that function for each new handle.
 */
export function keepReadBuffer(socket: object, exchange: () => void): void {
  const members = socket as Record<symbol, unknown>
  const kBuffer = symbolOf(socket, 'kBuffer')
  const kBufferGen = symbolOf(socket, 'kBufferGen')
  const buffer = kBuffer && members[kBuffer]
  if (
    kBufferGen === undefined ||
    typeof members[kBufferGen] !== 'function' ||
    !(buffer instanceof Uint8Array)
  )
    return exchange()
  const generate = members[kBufferGen]
  members[kBufferGen] = () => buffer
  try {
    exchange()
  } finally {
    members[kBufferGen] = generate
  }
}

/** A cluster worker's request to its primary for a listener. */
export interface ServerQuery {
  readonly address: string
  readonly port: number
  readonly addressType: number
  readonly fd: number
  readonly flags: number
}

/**
 * `askFor` emits 'listening', which node:cluster reports to the primary. The callback gets a handle, or an errno and
 * null.
 */
type AskPrimary = (
  askFor: { once(event: string, listener: () => void): void },
  query: ServerQuery,
  callback: (errno: number, handle: TcpHandle | null) => void,
) => void

const require = createRequire(import.meta.url)

/** The function by which a cluster worker gets a listener's handle; undefined in other processes. */
export function primaryOfCluster(): AskPrimary | undefined {
  // Loaded on first use, as in net.js: few programs need it.
  const cluster = require('node:cluster') as { isWorker: boolean; _getServer?: AskPrimary }
  return cluster.isWorker ? cluster._getServer : undefined
}

/**
 * Runs next ticks, then microtasks, as Node does after a callback of libuv. A tick that throws leaves its async
 * context on Node's stack; the next native call would abort the process. `_fatalException` clears the stack, so the
 * error is reported here.
 */
export function drainTicks(): void {
  try {
    tickCallback?.()
  } catch (error) {
    if (!reportUncaught(error)) endWith(error)
  }
}

/** Ends the program: Node reports an error from a microtask itself, and exits at once. */
function endWith(error: unknown): void {
  queueMicrotask(() => {
    throw error
  })
  drainTicks()
}

/**
 * Passes an error of one callback to the program's handler, so that the remaining callbacks can run. False if the
 * program has no handler or the handler refuses: then the caller must throw the error and run nothing else.
 */
export function reportUncaught(error: unknown): boolean {
  // Read on each call: worker threads and monitoring packages replace it.
  const { _fatalException: report } = process as {
    _fatalException?: (error: unknown, isRejection: boolean) => boolean
  }
  return isUncaughtHandled() && report?.(error, false) === true
}

/** Call in the async context of the socket: a domain sets its capture callback there. */
export function isUncaughtHandled(): boolean {
  return process.listenerCount('uncaughtException') > 0 || process.hasUncaughtExceptionCaptureCallback()
}

function look(): NodeInternals | undefined {
  const { _createServerHandle } = net as { _createServerHandle?: unknown }
  if (_createServerHandle === undefined || tickCallback === undefined) return undefined
  const reinitialize = Object.getOwnPropertySymbols(net.Socket.prototype).find(
    symbol => symbol.description === 'kReinitializeHandle',
  )
  const classes = boundClasses() ?? luredClasses()
  if (reinitialize === undefined || classes === undefined) return undefined
  const { JsStream, Tcp, Pipe } = classes
  const SOCKET = 0
  return {
    JsStream,
    Tcp,
    Pipe,
    createTcp: () => new Tcp(SOCKET),
    createPipe: () => new Pipe(SOCKET),
    isTcp: (handle): handle is TcpHandle => handle instanceof Tcp,
    isPipe: (handle): handle is PipeHandle => handle instanceof Pipe,
    reinitialize,
    lures,
  }
}

type NativeClasses = Pick<NodeInternals, 'JsStream' | 'Tcp' | 'Pipe'>

function boundClasses(): NativeClasses | undefined {
  const [JsStream, Tcp, Pipe] = [
    processBinding('js_stream')?.JSStream,
    processBinding('tcp_wrap')?.TCP,
    processBinding('pipe_wrap')?.Pipe,
  ]
  if (!isStreamClass(JsStream) || typeof Tcp !== 'function' || typeof Pipe !== 'function') return undefined
  return { JsStream, Tcp: Tcp as NodeInternals['Tcp'], Pipe: Pipe as NodeInternals['Pipe'] }
}

function isStreamClass(found: unknown): found is JsStreamClass {
  if (typeof found !== 'function') return false
  const methods = ['readBuffer', 'emitEOF', 'finishWrite', 'finishShutdown', 'useUserBuffer']
  return methods.every(name => typeof found.prototype?.[name] === 'function')
}

/** Where `process.binding` is not to be used: from the handles of TLS sockets. */
function luredClasses(): NativeClasses | undefined {
  const JsStream = findJsStream()
  const secureContext = anyContext()
  const Tcp = findTcp(secureContext)
  const Pipe = findPipe(secureContext)
  return JsStream && Tcp && Pipe && { JsStream, Tcp, Pipe }
}

/**
 * Keeps the probe objects for the life of the thread. If the collector freed them, the program's async hooks would
 * see a 'destroy' without an 'init'. The probes must leave no tick, immediate or open handle: a preloaded program
 * shares its first iteration with them.
 */
const lures: unknown[] = []

type Below = { unref?(): void }
/** `handle` is present for a TLS socket over a stream; otherwise `_wrapHandle` makes one. */
type WrapHandle = (
  this: object,
  ...args: [over: unknown, handle?: Below, ...rest: unknown[]]
) => {
  readonly _parent?: Below
}

/**
 * The native handle that a TLS socket over `source` would have. `TLSSocket._wrapHandle` finds or makes it; the override
 * then throws, so that no socket is made.
 */
function handleBelow(source: Duplex | undefined, options: object = {}): Below | undefined {
  const { _wrapHandle: wrapHandle } = tls.TLSSocket.prototype as { _wrapHandle?: WrapHandle }
  if (wrapHandle === undefined) return undefined
  let below: Below | undefined
  const isEnough = new Error('the handle has been seen')
  class Lure extends tls.TLSSocket {
    _wrapHandle(...args: Parameters<WrapHandle>): never {
      const wrapped = args[1] ? undefined : wrapHandle?.apply(this, args)
      below = args[1] ?? wrapped?._parent
      lures.push(source, below, wrapped)
      throw isEnough
    }
  }
  try {
    new Lure(source as never, options)
  } catch (error) {
    if (error !== isEnough) return undefined
  }
  below?.unref?.()
  return below
}

function findJsStream(): JsStreamClass | undefined {
  const source = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
  // Node calls `resume`, which would schedule a tick.
  source.resume = () => source
  const below = handleBelow(source)
  const found: unknown = below?.constructor
  return isStreamClass(found) ? found : undefined
}

/**
 * A context for probes. The empty `ca` saves reading all root certificates. The explicit cipher avoids an invalid
 * `--tls-cipher-list`, which must not break a program without TLS. Undefined if Node can make no context.
 */
function anyContext(): SecureContext | undefined {
  try {
    return tls.createSecureContext({ ca: [], ciphers: 'TLS_AES_128_GCM_SHA256' })
  } catch {
    return undefined
  }
}

/** `findTcp` and `findPipe` share one context; no connection uses it. */
function findTcp(secureContext: SecureContext | undefined): (new (type: number) => TcpHandle) | undefined {
  const below = secureContext && handleBelow(undefined, { secureContext })
  return below?.constructor as (new (type: number) => TcpHandle) | undefined
}

function findPipe(secureContext: SecureContext | undefined): (new (type: number) => PipeHandle) | undefined {
  const below = secureContext && handleBelow(undefined, { secureContext, pipe: true })
  return below?.constructor as (new (type: number) => PipeHandle) | undefined
}
