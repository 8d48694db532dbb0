/**
 * Relinking: wraps the few methods of `node:net` through which everything passes, so that every module that uses them
 * (http, https, http2, undici, any package), loaded before or after, gets fast sockets. Exports are never replaced.
 *
 * - `net.Socket.prototype.connect`      gives a new socket a fast handle; Node's own code then resolves names, emits
 *                                       events and shapes errors, and calls `handle.connect` when it is time to dial
 * - `kReinitializeHandle`               the same for the second and later addresses of one connect
 * - `net.Socket.prototype._writeGeneric`, `resetAndDestroy`    for sockets with a fast handle
 * - `net.Server.prototype.listen`, `_listen2`, `close`         a hashed port beside each TCP listener
 */
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import debug from 'debug'
import { drivers, isOwn, markOwn } from '../nic/index.ts'
import { RouteDialer } from './dialer.ts'
import { fastHandleClass, isFastHandle } from './fast-handle.ts'
import type { FastHandleClass, FastSocket } from './fast-handle-contract.ts'
import { acceptorFor, type FastServer, publish, withdraw, yieldHashedPort } from './listeners.ts'
import { nodeInternals, type ServerInternals, type SocketInternals } from './node-internals.ts'
import { Peers } from './peers.ts'
import { type FallbackReason, fallbackReason } from './reasons.ts'
import { recordFallback } from './transport.ts'

const log = debug('fastsockets:install')

/** One installation per thread, even if two copies of this package are loaded. */
const INSTALLED = Symbol.for('fastsockets.installed')

const UV_TCP_IPV6ONLY = 1

/** Why nothing can be fast in this process; undefined if things can. */
let globalReason: FallbackReason | undefined

export function install(): void {
  const marked = net as unknown as Record<symbol, boolean>
  if (marked[INSTALLED]) return
  marked[INSTALLED] = true
  globalReason = findGlobalReason()
  const Handle = globalReason === undefined ? fastHandleClass() : undefined
  if (Handle === undefined) {
    globalReason ??= fallbackReason('NODE_INTERNALS')
    log('everything over TCP: %s', globalReason.text)
    wrapConnectForRecord(globalReason)
    return
  }
  const connect: (this: net.Socket, options: net.TcpNetConnectOpts) => net.Socket =
    net.Socket.prototype.connect
  const peers = new Peers(acceptorFor(Handle), function (this: net.Socket, options) {
    markOwn(this)
    return connect.call(this, options)
  })
  wrapClient(Handle, peers)
  wrapSocket()
  wrapServer(peers)
  syncBuiltinESMExports()
  log('installed')
}

function findGlobalReason(): FallbackReason | undefined {
  if (process.env.FASTSOCKETS_DISABLE) return fallbackReason('DISABLED')
  const availability = drivers.get('shm')?.availability()
  if (availability?.usable) return undefined
  if (availability?.code === 'PLATFORM') return fallbackReason('PLATFORM', availability.reason)
  if (availability?.code === 'KOFFI') return fallbackReason('KOFFI', availability.reason)
  return fallbackReason('DRIVER', availability?.reason)
}

function wrapClient(Handle: FastHandleClass, peers: Peers): void {
  const internals = nodeInternals()
  if (internals === undefined) return
  const dialer = new RouteDialer(peers, internals)
  const prototype = net.Socket.prototype as net.Socket & Record<symbol, (handle: object) => void>
  const { connect } = prototype
  const reinitialize = prototype[internals.reinitialize] as (this: net.Socket, handle: object) => void
  /** Sockets whose connect under way may go on fast with a further address. */
  const candidates = new WeakSet<net.Socket>()

  define(prototype, 'connect', function connect_(this: FastSocket, ...args: unknown[]): net.Socket {
    if (!isOwn(this)) prepare(this, args)
    return (connect as (...args: unknown[]) => net.Socket).apply(this, args)
  })

  define(prototype, internals.reinitialize, function (this: FastSocket, handle: object): void {
    const isNextAddress = this.connecting && candidates.has(this) && dialer.demoting !== this
    if (!isNextAddress || !internals.isTcp(handle)) return reinitialize.call(this, handle)
    handle.close()
    reinitialize.call(this, new Handle(dialer))
  })

  function prepare(socket: FastSocket, args: unknown[]): void {
    const target = targetOf(args)
    if (target === undefined || isFastHandle(socket._handle)) return
    const reason = reasonAgainst(socket, target)
    if (reason !== undefined) return recordFallback(socket, reason)
    candidates.add(socket)
    Object.assign(socket, { _handle: null, _peername: null, _sockname: null })
    const handle = new Handle(dialer)
    handle.host = hostOf(target)
    reinitialize.call(socket, handle)
  }

  /** What is known before any name is resolved. */
  function reasonAgainst(socket: FastSocket, target: Target): FallbackReason | undefined {
    if (target.path) return fallbackReason('PIPE')
    if (socket._handle && !socket.destroyed) return fallbackReason('OWN_HANDLE')
    if (target.localAddress || target.localPort) return fallbackReason('LOCAL_ADDRESS')
    return dialer.knownReason(hostOf(target), target.port)
  }
}

/** What a call of `connect` asks for, as far as it matters here. */
interface Target {
  readonly host?: unknown
  readonly port?: unknown
  readonly path?: unknown
  readonly localAddress?: unknown
  readonly localPort?: unknown
}

/** Undefined if Node will refuse the arguments anyway. */
function targetOf(args: readonly unknown[]): Target | undefined {
  const list: readonly unknown[] = Array.isArray(args[0]) ? args[0] : args
  const first = list[0]
  if (typeof first === 'object' && first !== null) {
    const target = first as Target
    return target.path || target.port !== undefined ? target : undefined
  }
  // As Node decides it: what is not a port is a path.
  if (typeof first === 'string' && !(Number(first) >= 0)) return { path: first }
  return { port: first, host: list[1] }
}

function hostOf({ host }: Target): string {
  return typeof host === 'string' && host !== '' ? host : 'localhost'
}

function wrapSocket(): void {
  const prototype = net.Socket.prototype as net.Socket & SocketInternals
  const { _writeGeneric, resetAndDestroy } = prototype

  define(
    prototype,
    '_writeGeneric',
    function (
      this: FastSocket,
      writev: boolean,
      data: unknown,
      encoding: string,
      callback: () => void,
    ): unknown {
      const handle = this._handle
      if (!isFastHandle(handle) || this.connecting) {
        return _writeGeneric.call(this, writev, data, encoding, callback)
      }
      // Node keeps here what waits for the connection, and counts it in bytesWritten.
      Object.assign(this, { _pendingData: null, _pendingEncoding: '' })
      handle.writeFromSocket(this, writev, data, encoding, callback)
      return undefined
    },
  )

  define(prototype, 'resetAndDestroy', function (this: FastSocket): net.Socket {
    if (!isFastHandle(this._handle)) return resetAndDestroy.call(this)
    if (this.connecting) this.once('connect', () => this._reset())
    else this._reset()
    return this
  })
}

function wrapServer(peers: Peers): void {
  const prototype = net.Server.prototype as net.Server & ServerInternals
  const { listen, _listen2, close } = prototype

  define(prototype, 'listen', function listen_(this: FastServer, ...args: unknown[]): net.Server {
    const port = portOf(args)
    if (port !== undefined && !isOwn(this)) yieldHashedPort(port, peers)
    return (listen as (...args: unknown[]) => net.Server).apply(this, args)
  })

  // Node's own name for "now bind and listen", kept by it for wrappers: the one place that has the real port.
  define(prototype, '_listen2', function (this: FastServer, ...args: unknown[]): void {
    _listen2.apply(this, args)
    if (isOwn(this) || this._handle === null) return
    const code = publish(this, ((args[5] as number) & UV_TCP_IPV6ONLY) !== 0, peers)
    if (code !== undefined) log('a listener is not fast: %s', fallbackReason(code).text)
  })

  define(
    prototype,
    'close',
    function close_(this: FastServer, callback?: (error?: Error) => void): net.Server {
      withdraw(this)
      return close.call(this, callback)
    },
  )
}

/** Where nothing can be fast, sockets still say why. */
function wrapConnectForRecord(reason: FallbackReason): void {
  const { connect } = net.Socket.prototype
  define(
    net.Socket.prototype,
    'connect',
    function connect_(this: net.Socket, ...args: unknown[]): net.Socket {
      recordFallback(this, reason)
      return (connect as (...args: unknown[]) => net.Socket).apply(this, args)
    },
  )
}

function portOf(args: readonly unknown[]): number | undefined {
  const [first] = args
  const port = typeof first === 'object' && first !== null ? (first as { port?: unknown }).port : first
  return typeof port === 'number' || typeof port === 'string' ? Number(port) : undefined
}

/** Replaces a method and keeps how it looked: name, enumerability. */
function define(target: object, key: string | symbol, value: (...args: never[]) => unknown): void {
  const old = Object.getOwnPropertyDescriptor(target, key)
  const original = old?.value as ((...args: never[]) => unknown) | undefined
  if (original !== undefined) {
    Object.defineProperty(value, 'name', { value: original.name, configurable: true })
    Object.defineProperty(value, 'length', { value: original.length, configurable: true })
  }
  Object.defineProperty(target, key, { writable: true, enumerable: true, configurable: true, ...old, value })
}
