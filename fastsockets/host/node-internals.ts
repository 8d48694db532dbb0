/**
 * The parts of Node that are not public and that we stand on, each found by looking and checked before use. If one has
 * moved, everything stays on TCP (`NODE_INTERNALS`) and nothing breaks.
 *
 * - `JSStream`: a native StreamBase whose bytes JavaScript provides. Under a genuine `net.Socket` it makes tls, http
 *   and http2 attach natively, as they do to a TCP handle. Reached through a TLSSocket over a Duplex.
 * - `kReinitializeHandle`: how Node itself gives a connecting socket another handle.
 * - `process._tickCallback`: runs next ticks and microtasks, as Node does between two callbacks from libuv.
 * - `process._fatalException`: what Node calls when a callback from libuv throws.
 */
import { createRequire } from 'node:module'
import net from 'node:net'
import { Duplex } from 'node:stream'
import type { SecureContext } from 'node:tls'
import { isIpv6Only, sharesPort } from '../../nic/index.ts'
import { queueMicrotask } from '../../nic/real-time.ts'
import { tls } from './node-tls.ts'
import { CAN_SHARE_PORTS } from './node-versions.ts'

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

/** What we use of a TCP handle. */
export interface TcpHandle {
  connect(request: ConnectRequest, address: string, port: number): number
  connect6(request: ConnectRequest, address: string, port: number): number
  bind(address: string, port: number): number
  bind6(address: string, port: number, flags?: number): number
  getsockname(out: SocketName): number
  getpeername(out: SocketName): number
  listen(backlog: number): number
  /** Below 0 before it has one; a stand-in in a worker of a cluster has none. */
  readonly fd?: number
  /** Takes over a descriptor. */
  open(fd: number): number
  close(callback?: () => void): void
  unref(): void
  /** A stand-in in a worker of a cluster has none. */
  getAsyncId?(): number
  onconnection?: (status: number, handle: object) => void
}

/** A handle on a unix path is used as a TCP handle is, but for this. */
export type PipeHandle = TcpHandle & { connect(request: ConnectRequest, path: string): number }

/** What we use of the native class; see docs/decisions/0002-handle-not-subclass.md. */
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

/** Completes a request as native code does: a program may have put anything in the callback's place, which then is not called. */
export function complete(request: { readonly oncomplete?: unknown }, ...args: readonly unknown[]): void {
  callIfFunction(request.oncomplete, request, args)
}

/** Native code calls a callback only if it is a function. */
export function callIfFunction(callback: unknown, self: unknown, args: readonly unknown[] = []): void {
  if (typeof callback === 'function') Reflect.apply(callback, self, args)
}

/** Socket members that @types/node does not know. */
export interface SocketInternals {
  _handle: object | null
  /** What `_getsockname` has found. */
  _sockname?: SocketName | null
  /** What was written before it was connected. */
  _pendingData: unknown
  _pendingEncoding: string
  /** `ended`: the end has been read, though the program may not have seen it. */
  readonly _readableState: { readonly ended: boolean }
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
  /** Connections that are open. */
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
  readonly reinitialize: symbol
  /** Nobody reads it: it keeps what the look at Node's insides has made. */
  readonly lures: readonly unknown[]
}

type CreateServerHandle = (
  address: string,
  port: number,
  family: number,
  fd: undefined,
  flags: number,
) => TcpHandle | number

/**
 * Not imported, which would read each of its members: its `stdin` is a socket, made when it is asked for. And not left
 * global, where a getter answers each time.
 */
const { process } = globalThis
const { _tickCallback: tickCallback } = process as unknown as { _tickCallback?: () => void }
const { _createServerHandle } = net as unknown as { _createServerHandle?: CreateServerHandle }

let found: NodeInternals | undefined | null = null

/** Undefined if this Node is built differently. */
export function nodeInternals(): NodeInternals | undefined {
  if (found === null) found = look()
  return found
}

const symbols = new Map<string, symbol>()

/** A member of Node's own that has a symbol for a name, which is found by looking at an object that has it. */
function symbolOf(object: object, description: string): symbol | undefined {
  const known = symbols.get(description)
  if (known !== undefined) return known
  const symbol = Object.getOwnPropertySymbols(object).find(it => it.description === description)
  if (symbol !== undefined) symbols.set(description, symbol)
  return symbol
}

/** Whose handle it is: a socket's, or a server's. */
export function ownerOf(handle: object): object | undefined {
  const symbol = symbolOf(handle, 'owner_symbol')
  return symbol === undefined ? undefined : (handle as Record<symbol, object | undefined>)[symbol]
}

/** The handle has been closed, and has no owner any more. */
export function disown(handle: object): void {
  const symbol = symbolOf(handle, 'owner_symbol')
  if (symbol !== undefined) (handle as Record<symbol, object | null>)[symbol] = null
}

/** Whether the socket was made with a `BoundSocket`: net.js remembers that for good. */
export function hasBoundSource(socket: object): boolean {
  const symbol = symbolOf(socket, 'kBoundSource')
  return symbol !== undefined && (socket as Record<symbol, unknown>)[symbol] === true
}

/** Makes `handle` belong to the owner of `model`. */
export function copyOwner(model: object, handle: object): void {
  const symbol = symbolOf(model, 'owner_symbol')
  if (symbol !== undefined) Object.assign(handle, { [symbol]: ownerOf(model) })
}

/** How much waited in the handle when the last write began: by this net.js knows at a time-out that a write goes on. */
export function noteQueueSize(socket: object, size: number): void {
  const symbol = symbolOf(socket, 'lastWriteQueueSize')
  if (symbol !== undefined) Object.assign(socket, { [symbol]: size })
}

interface Options {
  setNoDelay?(isOn: boolean): void
  setKeepAlive?(isOn: boolean, delayS: unknown): void
}

/** What the socket was told to be it told a handle that is gone: `handle` is told, too. */
export function repeatOptions(socket: object, handle: Options): void {
  const has = (description: string): unknown =>
    (socket as Record<symbol, unknown>)[symbolOf(socket, description) as symbol]
  if (has('kSetNoDelay')) handle.setNoDelay?.(true)
  if (has('kSetKeepAlive')) handle.setKeepAlive?.(true, has('kSetKeepAliveInitialDelay'))
}

/** Whoever measures connects with a PerformanceObserver does not hear of this one. */
export function hideConnect(socket: object): void {
  const symbol = symbolOf(socket, 'kPerfHooksNetConnectContext')
  if (symbol !== undefined) Object.assign(socket, { [symbol]: null })
}

/**
 * net.js asks a program that reads by `onread` for its buffer each time the socket is given a handle. The program must not
 * notice that this happens twice.
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

/** How a TCP listener is bound, but for its address. */
export interface Binding {
  readonly ipv6Only: boolean
  /** Others may listen there, too, and the kernel spreads callers over all: `reusePort`. */
  readonly isPortShared: boolean
}

/** As net.js passes them to a handle. */
const UV_TCP_IPV6ONLY = 1
const UV_TCP_REUSEPORT = 2

/** How a listener is bound: as the kernel says, for the program may have bound it anywhere; or as it was asked for. */
export function bindingOf({ fd = -1 }: TcpHandle, flags: number): Binding {
  if (fd < 0) return { ipv6Only: (flags & UV_TCP_IPV6ONLY) !== 0, isPortShared: false }
  return { ipv6Only: isIpv6Only(fd), isPortShared: CAN_SHARE_PORTS && sharesPort(fd) }
}

/** A bound TCP handle that does not listen yet, or a negative errno. */
export function createServerHandle(
  address: string,
  port: number,
  family: number,
  { ipv6Only, isPortShared }: Binding,
): TcpHandle | number {
  const flags = (ipv6Only ? UV_TCP_IPV6ONLY : 0) | (isPortShared ? UV_TCP_REUSEPORT : 0)
  return (_createServerHandle as CreateServerHandle)(address, port, family, undefined, flags)
}

/** What a worker of a cluster asks its primary for. */
export interface ServerQuery {
  readonly address: string
  readonly port: number
  readonly addressType: number
  readonly fd: number
  readonly flags: number
}

/** `askFor` hears of 'listening', which the primary is told then. A handle, or an errno and none. */
type AskPrimary = (
  askFor: { once(event: string, listener: () => void): void },
  query: ServerQuery,
  callback: (errno: number, handle: TcpHandle | null) => void,
) => void

const require = createRequire(import.meta.url)

/** How a listener gets its handle in a worker of a cluster; undefined in any other process. */
export function primaryOfCluster(): AskPrimary | undefined {
  // Loaded on first use, as net.js does it: few programs need it.
  const cluster = require('node:cluster') as { isWorker: boolean; _getServer?: AskPrimary }
  return cluster.isWorker ? cluster._getServer : undefined
}

/**
 * What libuv's callbacks are followed by: next ticks, then microtasks. A tick that throws leaves its context behind on Node's
 * stack of contexts, for which native code that is called below would end the program: its error is told here.
 */
export function drainTicks(): void {
  try {
    tickCallback?.()
  } catch (error) {
    if (!tellUncaught(error)) endWith(error)
  }
}

/** Out of a microtask Node tells of the error itself, and ends the program there and then. */
function endWith(error: unknown): void {
  queueMicrotask(() => {
    throw error
  })
  drainTicks()
}

/**
 * Gives the program what one of several callbacks has thrown that libuv would call by themselves. False if the program
 * does not handle it, or cannot be told so: then it must be thrown, and nothing comes after it.
 */
export function tellUncaught(error: unknown): boolean {
  // Looked at now: a worker, and who watches over a program, puts another one in its place.
  const { _fatalException: tell } = process as {
    _fatalException?: (error: unknown, isRejection: boolean) => boolean
  }
  return isUncaughtHandled() && tell?.(error, false) === true
}

/** Asked within the context of a socket, where a domain may be listening. */
export function isUncaughtHandled(): boolean {
  return process.listenerCount('uncaughtException') > 0 || process.hasUncaughtExceptionCaptureCallback()
}

function look(): NodeInternals | undefined {
  if (_createServerHandle === undefined || tickCallback === undefined) return undefined
  const reinitialize = Object.getOwnPropertySymbols(net.Socket.prototype).find(
    symbol => symbol.description === 'kReinitializeHandle',
  )
  const JsStream = findJsStream()
  const secureContext = anyContext()
  const Tcp = findTcp(secureContext)
  const Pipe = findPipe(secureContext)
  if (reinitialize === undefined || JsStream === undefined || !Tcp || !Pipe) return undefined
  const SOCKET = 0
  return {
    JsStream,
    Tcp,
    Pipe,
    createTcp: () => new Tcp(SOCKET),
    createPipe: () => new Pipe(SOCKET),
    isTcp: (handle): handle is TcpHandle => handle instanceof Tcp,
    reinitialize,
    lures,
  }
}

/**
 * Whatever a lure has made is kept, for as long as this thread lives. A program that is required before it runs shares its
 * first turn with what was left behind, and may ask what keeps it alive, or have hooks that hear of ticks, of immediates, and
 * of the end of what has no beginning.
 */
const lures: unknown[] = []

type Below = { unref?(): void }
/** `handle` is there if the socket is put over something; if not, one is made. */
type WrapHandle = (
  this: object,
  ...args: [over: unknown, handle?: Below, ...rest: unknown[]]
) => {
  readonly _parent?: Below
}

/** A TLS socket finds or makes the handle below it in a method of its own, and need not become a socket any more. */
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
  // Node resumes it, which leaves a tick behind.
  source.resume = () => source
  const below = handleBelow(source)
  const prototype = below && Object.getPrototypeOf(below)
  const methods = ['readBuffer', 'emitEOF', 'finishWrite', 'finishShutdown', 'useUserBuffer']
  if (!prototype || !methods.every(name => typeof prototype[name] === 'function')) return undefined
  return prototype.constructor as JsStreamClass
}

/**
 * Without a list of its own a context reads the certificates of all authorities, and what the program was started with may
 * name ciphers that there are not: a program without TLS never hears of it. Undefined if there can be no context.
 */
function anyContext(): SecureContext | undefined {
  try {
    return tls.createSecureContext({ ca: [], ciphers: 'TLS_AES_128_GCM_SHA256' })
  } catch {
    return undefined
  }
}

/** Both kinds are found with one context: none is ever used. */
function findTcp(secureContext: SecureContext | undefined): (new (type: number) => TcpHandle) | undefined {
  const below = secureContext && handleBelow(undefined, { secureContext })
  return below?.constructor as (new (type: number) => TcpHandle) | undefined
}

function findPipe(secureContext: SecureContext | undefined): (new (type: number) => PipeHandle) | undefined {
  const below = secureContext && handleBelow(undefined, { secureContext, pipe: true })
  return below?.constructor as (new (type: number) => PipeHandle) | undefined
}
