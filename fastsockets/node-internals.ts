/**
 * The parts of Node that are not public and that we stand on, each found by looking and checked before use. If one has
 * moved, everything stays on TCP (`NODE_INTERNALS`) and nothing breaks.
 *
 * - `JSStream`: a native StreamBase whose bytes JavaScript provides. Under a genuine `net.Socket` it makes tls, http
 *   and http2 attach natively, as they do to a TCP handle. Reached through a TLSSocket over a Duplex.
 * - `kReinitializeHandle`: how Node itself gives a connecting socket another handle.
 * - `process._tickCallback`: runs next ticks and microtasks, as Node does between two callbacks from libuv.
 */
import net from 'node:net'
import { Duplex } from 'node:stream'
import tls from 'node:tls'

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
  listen(backlog: number): number
  close(callback?: () => void): void
  unref(): void
  onconnection?: (status: number, handle: object) => void
}

/** What we use of the native class; see docs/decisions/0002-handle-not-subclass.md. */
export declare class NativeStream {
  get onread(): ReadListener | undefined
  set onread(listener: ReadListener | undefined)
  get isStreamBase(): boolean
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

/** Socket members that @types/node does not know. */
export interface SocketInternals {
  _handle: object | null
  _unrefTimer(): void
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
  _listen2(...args: unknown[]): void
}

export interface NodeInternals {
  readonly JsStream: JsStreamClass
  readonly createTcp: () => TcpHandle
  readonly isTcp: (handle: unknown) => handle is TcpHandle
  readonly reinitialize: symbol
}

type CreateServerHandle = (
  address: string,
  port: number,
  family: number,
  fd: undefined,
  flags: number,
) => TcpHandle | number

const { _createServerHandle } = net as unknown as { _createServerHandle?: CreateServerHandle }
const { _tickCallback } = process as unknown as { _tickCallback?: () => void }

let found: NodeInternals | undefined | null = null

/** Undefined if this Node is built differently. */
export function nodeInternals(): NodeInternals | undefined {
  if (found === null) found = look()
  return found
}

/** A bound TCP handle that does not listen yet, or a negative errno. */
export function createServerHandle(
  address: string,
  port: number,
  family: number,
  ipv6Only: boolean,
): TcpHandle | number {
  const UV_TCP_IPV6ONLY = 1
  return (_createServerHandle as CreateServerHandle)(
    address,
    port,
    family,
    undefined,
    ipv6Only ? UV_TCP_IPV6ONLY : 0,
  )
}

/** What libuv's callbacks are followed by: next ticks, then microtasks. */
export const drainTicks: () => void = _tickCallback ?? (() => {})

function look(): NodeInternals | undefined {
  if (_createServerHandle === undefined || _tickCallback === undefined) return undefined
  const reinitialize = Object.getOwnPropertySymbols(net.Socket.prototype).find(
    symbol => symbol.description === 'kReinitializeHandle',
  )
  const JsStream = findJsStream()
  const Tcp = findTcp()
  if (reinitialize === undefined || JsStream === undefined || Tcp === undefined) return undefined
  const SOCKET = 0
  return {
    JsStream,
    createTcp: () => new Tcp(SOCKET),
    isTcp: (handle): handle is TcpHandle => handle instanceof Tcp,
    reinitialize,
  }
}

function findJsStream(): JsStreamClass | undefined {
  try {
    const lure = new tls.TLSSocket(
      new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() }) as never,
    )
    lure.on('error', () => {})
    const parent = (lure as unknown as { _handle?: { _parent?: object } })._handle?._parent
    lure.destroy()
    const prototype = parent && Object.getPrototypeOf(parent)
    const methods = ['readBuffer', 'emitEOF', 'finishWrite', 'finishShutdown', 'useUserBuffer']
    if (!prototype || !methods.every(name => typeof prototype[name] === 'function')) return undefined
    return prototype.constructor as JsStreamClass
  } catch {
    return undefined
  }
}

function findTcp(): (new (type: number) => TcpHandle) | undefined {
  const handle = (_createServerHandle as CreateServerHandle)('127.0.0.1', 0, 4, undefined, 0)
  if (typeof handle === 'number') return undefined
  handle.close()
  return handle.constructor as new (
    type: number,
  ) => TcpHandle
}
