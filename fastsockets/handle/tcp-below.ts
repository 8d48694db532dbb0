/** Node's own TCP handle of a connected socket, or the pipe handle of one over a unix path, as promotion uses it. */
import { fstatSync } from 'node:fs'
import type net from 'node:net'
import { afterNativeCall } from '../host/native-calls.ts'
import {
  type NodeInternals,
  nodeInternals,
  type ReadListener,
  type SocketName,
  type TcpHandle,
} from '../host/node-internals.ts'
import { parsers } from '../host/parsed-handles.ts'
import { processBinding } from '../host/process-binding.ts'
import { freeNow } from '../host/spent-memory.ts'
import { canSeeReads, isLastWriteAsync, STOCK_READER } from '../host/stream-state.ts'
import type { FastSocket } from './fast-handle-contract.ts'

export type ConnectedTcp = TcpHandle & {
  onread: ReadListener | undefined
  reading: boolean
  readonly bytesRead: number
  readonly bytesWritten: number
  readonly writeQueueSize: number
  /** The parser of http reads from it in native code. */
  readonly _consumed?: boolean
  readStart(): number
  readStop(): number
  shutdown(request: object): number
  setNoDelay(isOn: boolean): number
  setKeepAlive(isOn: boolean, delayS: number): number
  writev(request: object, buffers: readonly Uint8Array[], areBuffers: true): number
  hasRef(): boolean
  ref(): void
  reset(callback?: () => void): number
}

type PlainWrite = FastSocket['_writeGeneric']
type WriteRequest = object & {
  oncomplete?: (status: number) => void
  handle?: object
  buffers?: readonly Uint8Array[]
}

/** Node's own `_writeGeneric`. */
let plainWrite: PlainWrite | undefined
let WriteWrap: (new () => WriteRequest) | undefined
let ShutdownWrap: (new () => WriteRequest) | undefined

/** To be called once, with Node's own method. */
export function provideWrite(write: PlainWrite): void {
  plainWrite = write
  const { WriteWrap: write_, ShutdownWrap: shutdown } = processBinding('stream_wrap') ?? {}
  if (typeof write_ !== 'function' || typeof shutdown !== 'function' || !canSeeReads()) return
  WriteWrap = write_ as new () => WriteRequest
  ShutdownWrap = shutdown as new () => WriteRequest
}

/** Whether this Node shows what promotion needs. */
export function canPromote(): boolean {
  return WriteWrap !== undefined
}

/** A write of the socket that goes by `tcp`, though the socket has another handle. */
export function writeAs(tcp: ConnectedTcp, socket: FastSocket, ...args: Parameters<PlainWrite>): void {
  const { _handle: handle } = socket
  socket._handle = tcp
  try {
    ;(plainWrite as PlainWrite).apply(socket, args)
  } finally {
    if (socket._handle === tcp) socket._handle = handle
  }
}

/**
 * A write of native code, whose buffers are copies of ours. Returns 0 or a negative errno; after 0 `onDone` is called, perhaps
 * in this call.
 */
export function writeBelow(
  tcp: ConnectedTcp,
  buffers: readonly Uint8Array[],
  onDone: (status: number, isInCall: boolean) => void,
): number {
  const request = new (WriteWrap as new () => WriteRequest)()
  request.handle = tcp
  // Keeps them until they are written.
  request.buffers = buffers
  request.oncomplete = written => onDone(written, false)
  const status = tcp.writev(request, buffers, true)
  if (status !== 0 || isLastWriteAsync()) return status
  freeNow(buffers)
  onDone(0, true)
  return 0
}

/** A shutdown(2) of native code. Returns 0 or a negative errno; after 0 `onDone` is called later. */
export function shutdownBelow(tcp: ConnectedTcp, onDone: () => void): number {
  const request = new (ShutdownWrap as new () => WriteRequest)()
  request.handle = tcp
  request.oncomplete = onDone
  const status = tcp.shutdown(request)
  if (status === 1) afterNativeCall(onDone)
  return Math.min(status, 0)
}

/**
 * The handle of a socket that can be moved now: connected, and read by JavaScript, Node's own (or `reader`) or, in a server
 * of http, by the parser, which can be detached. Undefined for all others. `isYetRead`: of a session of http2 that has not begun to read.
 */
export function movableTcp(
  socket: FastSocket,
  reader?: ReadListener,
  isYetRead = false,
): ConnectedTcp | undefined {
  const { _handle: handle } = socket
  const { isTcp, isPipe } = nodeInternals() as NodeInternals
  if (!(isTcp(handle) || isPipe(handle)) || socket.destroyed || socket.connecting) return undefined
  const tcp = handle as ConnectedTcp
  // A TLS socket above it has put an accessor there.
  if (Object.getOwnPropertyDescriptor(tcp, 'reading')?.get !== undefined) return undefined
  // Node's own http marks the handle, and `detachParser` detaches its parser. That of a program stays.
  if (parsers.has(tcp) && !tcp._consumed) return undefined
  const isRead = tcp.onread?.name === STOCK_READER || (reader !== undefined && tcp.onread === reader)
  if (!isRead || readsIntoOwnBuffer(socket) || (!isYetRead && isOfHttp2(socket))) return undefined
  return tcp
}

function readsIntoOwnBuffer(socket: FastSocket): boolean {
  const symbol = Object.getOwnPropertySymbols(socket).find(({ description }) => description === 'kBuffer')
  return symbol !== undefined && Boolean((socket as unknown as Record<symbol, unknown>)[symbol])
}

/** A session of http2 reads in native code, and its listener has this name. */
export function isOfHttp2(socket: net.Socket): boolean {
  return socket.listeners('close').some(({ name }) => name === 'socketOnClose')
}

/** Detaches the parser of http, as Node does for a program that listens to 'data'. */
export function detachParser(socket: FastSocket, tcp: ConnectedTcp): void {
  if (!tcp._consumed) return
  const listener = (): void => {}
  socket.on('data', listener)
  socket.removeListener('data', listener)
  // http has paused the socket, and its listener that would start the handle again is gone. Then `resume` starts it, but only
  // if the stream is not reading; that of a socket with a parser always is.
  if (!tcp.reading) socket._readableState.reading = false
}

/** Whether a handle is over a unix path. */
export function isOverPath(handle: unknown): boolean {
  return (nodeInternals() as NodeInternals).isPipe(handle)
}

/** By what the kernel tells this end of a connection over a unix path from all others of the host; undefined for other handles. */
export function inodeOf(handle: unknown): number | undefined {
  const { isPipe } = nodeInternals() as NodeInternals
  if (!isPipe(handle) || handle.fd === undefined || handle.fd < 0) return undefined
  return fstatSync(handle.fd).ino
}

/** The four addresses of a connection. */
export interface FourAddresses {
  readonly client: Required<SocketName>
  readonly server: Required<SocketName>
}

/** Those of a TCP handle; undefined for others, and if the kernel does not say. */
export function endsOfTcp(handle: unknown, isServer: boolean): FourAddresses | undefined {
  const { isTcp } = nodeInternals() as NodeInternals
  if (!isTcp(handle)) return undefined
  const local: SocketName = {}
  const remote: SocketName = {}
  if (handle.getsockname(local) !== 0 || handle.getpeername(remote) !== 0) return undefined
  const [client, server] = (isServer ? [remote, local] : [local, remote]) as Required<SocketName>[]
  return client?.address && server?.address ? { client, server } : undefined
}
