/**
 * TLS sockets make their own handle: `tls.connect({ port })`, and with it https and http2, wraps a new TCP handle long
 * before it connects. At the connect, the handle below can still be exchanged: for a fast one, and for TCP again if the
 * connection cannot be fast. Node does the same when it tries a second address, but closes the secure context that both
 * share; so the steps are our own. They also serve a TLS socket over another socket that connects and gets a new
 * handle.
 */
import net, { type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { define } from '../host/define.ts'
import { keptGlobals } from '../host/kept-globals.ts'
import { copyOwner, keepReadBuffer, type NodeInternals, repeatOptions } from '../host/node-internals.ts'
import { tls } from '../host/node-tls.ts'
import { moveConsumer } from './consumed-handles.ts'
import { fastOf } from './fast-handle.ts'
import type { FastSocket } from './fast-handle-contract.ts'

/** The wrap that tls puts over the handle of a connection. */
interface TlsWrap {
  readonly _parent: { close(callback: () => void): void }
  /** The socket below, if it is not the TLS socket itself. */
  _parentWrap: object | null
  close(): void
  destroySSL(): void
  getServername(): string | false | undefined
  getSession(): Buffer | undefined
  setSession(session: Buffer): void
  enableSessionCallbacks(): void
  enableKeylogCallback(): void
  enableTrace(): void
}

interface TlsInternals {
  _handle: TlsWrap | null
  ssl: TlsWrap | null
  readonly _tlsOptions?: { readonly enableTrace?: boolean; readonly isServer?: boolean }
  _wrapHandle(below: null, handle: object, hasActiveWrite: boolean): TlsWrap
  _init(socket: null, wrap: null): void
  setServername(name: string): void
}

type TlsSocket = TLSSocket & TlsInternals

const { _wrapHandle, _init } = tls.TLSSocket.prototype as unknown as Partial<TlsInternals>
/** Whether this Node has what `exchangeTlsHandle` needs. */
const CAN_EXCHANGE = typeof _wrapHandle === 'function' && typeof _init === 'function'

/** By the handle of a connecting socket: the TLS socket over it. Weak, as handles may live longer. */
const uppers = new WeakMap<object, WeakRef<TlsSocket>>()

/** A TLS socket was put over `below`, which has this handle. */
export function noteUpper(upper: Socket, below: Socket, handle: object): void {
  const fast = fastOf(handle)
  if (fast !== undefined) fast.upper = upper as FastSocket
  if (below.connecting) uppers.set(handle, new keptGlobals.WeakRef(upper as TlsSocket))
}

/** True for a TLS socket that made its own handle, and has not connected. */
export function isUnconnectedTls(socket: Socket): socket is TlsSocket {
  if (!(socket instanceof tls.TLSSocket) || !isExchangeable(socket as TlsSocket)) return false
  const { _handle, _tlsOptions } = socket as TlsSocket
  return _handle?._parentWrap === null && !_tlsOptions?.isServer
}

function isExchangeable({ destroyed, connecting, ssl }: TlsSocket): boolean {
  // A destroyed socket that connects all the same has no session.
  return CAN_EXCHANGE && connecting && !destroyed && ssl !== null
}

/** A timed-out attempt removed the session. Node makes another one over its next handle, but does not set `ssl`. */
export function renewSession(socket: Socket, handle: object, reinitialize: HandleSetter): void {
  reinitialize.call(socket, handle)
  const renewed = socket as TlsSocket
  renewed.ssl = renewed._handle
}

/**
 * Puts `handle` below an unconnected TLS socket, which keeps all settings of the program. `below` is the socket that
 * owns the handle, if it is not the TLS socket: that socket has closed the old handle.
 */
function exchangeTlsHandle(
  socket: TlsSocket,
  handle: object,
  reinitialize: HandleSetter,
  below?: Socket,
): void {
  const old = socket._handle as TlsWrap
  const servername = old.getServername()
  const session = old.getSession()
  const wrap = socket._wrapHandle(null, handle, below !== undefined && below.writableLength > 0)
  if (below === undefined) {
    copyOwner(old, handle)
    // Not through the wrap, which would close the secure context.
    old._parent.close(() => old.destroySSL())
  } else {
    // Set here: Node would add another listener for the end of `below` each time.
    wrap._parentWrap = below
    noteUpper(socket, below, handle)
    repeatOptions(socket, handle)
    old.destroySSL()
  }
  socket._handle = null
  reinitialize.call(socket, wrap)
  socket.ssl = wrap
  const keylogListeners = socket.listeners('keylog')
  socket._init(null, null)
  // With --tls-keylog, Node adds one listener each time.
  for (const added of socket.listeners('keylog').slice(keylogListeners.length))
    socket.off('keylog', added as () => void)
  // On the wrap: newer Node refuses `socket.setSession` for a session without an owner.
  if (session) wrap.setSession(session)
  if (servername) socket.setServername(servername)
  if (socket.listenerCount('session') > 0) wrap.enableSessionCallbacks()
  if (socket.listenerCount('keylog') > 0) wrap.enableKeylogCallback()
  if (socket._tlsOptions?.enableTrace) wrap.enableTrace()
}

export type HandleSetter = (this: Socket, handle: object) => void
export type HandleExchange = (socket: Socket, handle: object) => void

/** The socket whose stream state Node must not reset now. */
let kept: Socket | undefined

/**
 * Runs `exchange`, by which Node would also reset the stream's state, and forget that the program has called `end()`.
 */
export function keepStreamState(socket: Socket, exchange: () => void): void {
  const keptBefore = kept
  kept = socket
  try {
    exchange()
  } finally {
    kept = keptBefore
  }
}

/** Wraps `_undestroy` on the prototype where Node has it: programs that list the members of sockets see no other. */
function wrapUndestroy(): void {
  let prototype = net.Socket.prototype as { _undestroy?: () => void }
  while (!Object.hasOwn(prototype, '_undestroy')) {
    prototype = Object.getPrototypeOf(prototype)
    if (prototype === null) return
  }
  const { _undestroy } = prototype
  define(prototype, '_undestroy', function (this: object): void {
    if (this !== kept) _undestroy?.call(this)
  })
}

/** Gives a connecting socket of either kind another handle. Call before Node's own method is wrapped. */
export function handleExchange({ reinitialize }: NodeInternals): HandleExchange {
  wrapUndestroy()
  const plain = (net.Socket.prototype as unknown as Record<symbol, HandleSetter>)[
    reinitialize
  ] as HandleSetter
  const exchangeBelow = (upper: TlsSocket | undefined, below: Socket): void => {
    if (upper === undefined || !isExchangeable(upper)) return
    const old = upper._handle as object
    keepStreamState(upper, () =>
      exchangeTlsHandle(upper, (below as FastSocket)._handle as object, plain, below),
    )
    exchangeBelow(uppers.get(old)?.deref(), upper)
  }
  return (socket, handle) => {
    const { _handle: old } = socket as FastSocket
    keepReadBuffer(socket, () => {
      if (isUnconnectedTls(socket)) exchangeTlsHandle(socket, handle, plain)
      else plain.call(socket, handle)
    })
    if (!old) return
    moveConsumer(old, handle)
    exchangeBelow(uppers.get(old)?.deref(), socket)
  }
}
