/**
 * Relinking: wraps the few methods of `node:net` that all connections pass through. So every module that uses them
 * (http, https, http2, undici, any package), loaded before or after, gets fast sockets. Only one export is replaced.
 *
 * - `net.Socket.prototype.connect`      gives a new socket a fast handle; Node's own code then resolves names, emits
 *                                       events and shapes errors, and calls `handle.connect` when it is time to dial
 * - `kReinitializeHandle`               the same for the second and later addresses of one connect
 * - `net.Socket.prototype._writeGeneric`, `resetAndDestroy`    for sockets with a fast handle
 * - `net.Socket.prototype._getpeername`, `_getsockname`        for sockets that another process has bridged
 * - `tls.TLSSocket.prototype._wrapHandle`    to note which TLS socket is over a fast socket
 * - `net.Server.prototype.listen`, `_listen2`, `close`         a hashed port beside each TCP listener
 * - the method that moves a `net.Server` to another thread      the moved server listens here no more
 * - `_getActiveHandles` and `getActiveResourcesInfo` of this process       list each fast socket as a TCP socket
 * - `publish` of the diagnostics channels of `node:net`     hides our own servers and sockets (own-diagnostics.ts)
 *
 * Wrappers of preload.ts call what this file puts into `entries`. All other methods are wrapped here.
 */
import { createRequire, syncBuiltinESMExports } from 'node:module'
import net from 'node:net'
import { isOwn, makeHidden, markOwn, openLog, reasonAgainstFolder } from '../../nic/index.ts'
import { nextTick, setImmediate } from '../../nic/real-time.ts'
import { mayLeadElsewhere, mayReachHosts } from '../bootstrap/remote-hosts.ts'
import { delayListening, emitDelayed } from '../connect/delayed-listening.ts'
import { RouteDialer } from '../connect/dialer.ts'
import {
  messageOf,
  noteFailedStart,
  reasonAgainstFastWay,
  reasonForGood,
  reasonNow,
} from '../connect/fast-way.ts'
import {
  decideListener,
  failListening,
  holdTcpClients,
  mayBeDecided,
  refuseIfRequired,
} from '../connect/listener-policy.ts'
import {
  acceptorFor,
  countTcpAccepted,
  type FastServer,
  publish,
  publishShared,
  withdraw,
  yieldHashedPort,
} from '../connect/listeners.ts'
import { prepareNames } from '../connect/names.ts'
import { Peers } from '../connect/peers.ts'
import { Promoter } from '../connect/promoter.ts'
import { Routes } from '../connect/routes.ts'
import { hideSlowListener, showSlowListener } from '../connect/slow-listeners.ts'
import { boundHandles, watching } from '../datagram/udp-notes.ts'
import { fastHandleClass, fastOf } from '../handle/fast-handle.ts'
import type { FastHandle, FastHandleClass, FastSocket } from '../handle/fast-handle-contract.ts'
import { canPromote, isOfHttp2, provideWrite } from '../handle/tcp-below.ts'
import {
  type HandleExchange,
  type HandleSetter,
  handleExchange,
  isUnconnectedTls,
  noteUpper,
  renewSession,
} from '../handle/tls-sockets.ts'
import {
  isCandidate,
  isFast,
  logConnect,
  possibleWire,
  recordCandidate,
  recordFallback,
} from '../handle/transport.ts'
import { define } from '../host/define.ts'
import { inTurns } from '../host/in-turns.ts'
import { openIoTurns } from '../host/io-turns.ts'
import { bindingOf } from '../host/listener-binding.ts'
import {
  hasBoundSource,
  type NodeInternals,
  nodeInternals,
  primaryOfCluster,
  type ServerInternals,
  type SocketInternals,
  type SocketName,
} from '../host/node-internals.ts'
import { tls } from '../host/node-tls.ts'
import { node20 } from '../host/node-versions.ts'
import { hideOwn } from '../host/own-diagnostics.ts'
import { noteTarget } from '../host/unix-targets.ts'
import { allowsDatagrams, decidePath, startsOnTcp } from '../policy/own-policy.ts'
import { RequiredError } from '../policy/required-error.ts'
import { forgetAccepted, noteAccepted } from '../promotion/accepted-sockets.ts'
import { lengthOfWrite } from '../promotion/connections.ts'
import { mayReturn, moveToTcpUnread } from '../promotion/demotion.ts'
import { isForNativeCode, placeForNative, replaceEarly, startOverTcp } from '../promotion/native-starts.ts'
import { handleWritev, takeBack } from '../promotion/next-turn.ts'
import { openHandles, openSockets } from '../promotion/reads.ts'
import { type FallbackCode, type FallbackReason, fallbackReason } from '../reasons.ts'
import { statusPage } from '../status/status-page.ts'
import { hideTcp, showAccepted, showOlderClient, watchAccepted } from '../status/tcp-rows.ts'
import type { Acceptor } from '../stream/socket-channel.ts'
import { showActive } from './active-handles.ts'
import { bridgeOrFail, isFastSocket } from './bridge.ts'
import { isFarEnd, nameFarEnd } from './bridge-names.ts'
import { type ConnectTarget, isPort, targetOf } from './connect-target.ts'
import { entries, sending } from './entries.ts'
import { followPolicy, moveForbidden, noteDecided, publishDecided } from './new-policy.ts'

export { noteParser } from '../handle/consumed-handles.ts'
export { transportOf } from '../handle/transport.ts'
export { RequiredError } from '../policy/required-error.ts'
export { FALLBACK_REASONS } from '../reasons.ts'

const log = openLog('fastsockets:install')
const require = createRequire(import.meta.url)

/** Publishes a server that listens already; the second parameter is the arguments of its `_listen2`. */
export let publishLate: (server: net.Server, args: readonly unknown[]) => void = () => {}

/** Node's own name for the method that moves an object to another thread. */
const TRANSFER = 'messaging_transfer_symbol'

/** Relinks this thread; preload.ts calls it once. */
export function install(): void {
  const reason = startPage() ?? (reasonForGood() && reasonAgainstFastWay()) ?? attempt(wrapAll)
  if (reason === undefined) {
    log('installed')
    void prepareNames()
    return
  }
  log('everything over TCP: %s: %s', reason.code, reason.text)
  attempt(() => wrapForRecord(reason))
}

function startPage(): FallbackReason | undefined {
  return attempt(() => void statusPage())
}

/**
 * Runs `action`; returns the reason if it throws, because a failure here must not fail the program. Methods already
 * wrapped ask for the reason themselves (`reasonAgainst`).
 */
function attempt(action: () => void): FallbackReason | undefined {
  try {
    action()
    return undefined
  } catch (error) {
    return noteFailedStart(error)
  }
}

function wrapAll(): void {
  openIoTurns(nodeInternals() as NodeInternals)
  const Handle = fastHandleClass() as FastHandleClass
  const connect = entries.connect as (this: net.Socket, options: net.NetConnectOpts) => net.Socket
  const exchange = handleExchange(nodeInternals() as NodeInternals)
  const acceptPair: Acceptor = (...args) => datagrams().acceptDatagrams(...args)
  const peers = new Peers(acceptorFor(Handle, exchange, acceptPair), function (this: net.Socket, options) {
    markOwn(this)
    return makeHidden(() => connect.call(this, options))
  })
  const routes = new Routes()
  const promoter = wrapClient(Handle, peers, routes, exchange)
  replaceEarly(exchange, promoter)
  wrapSocket(promoter)
  wrapNative(promoter && (socket => placeForNative(socket, exchange, promoter)))
  const publishAgain = wrapServer(peers)
  followPolicy(() => {
    routes.clear()
    promoter?.handleNewPolicy()
    publishAgain()
    moveForbidden(peers.streams())
    for (const { carrier } of boundHandles.values()) carrier?.handlePolicy()
    carryDatagrams(peers)
  })
  carryDatagrams(peers)
  showActive(peers)
  hideOwn()
  watchAccepted(isFast, (server, socket) => {
    countTcpAccepted(server)
    noteAccepted(socket)
    logConnect?.('from %s port %d: tcp, ACCEPTED', socket.remoteAddress, socket.remotePort)
  })
  syncBuiltinESMExports()
}

/** Shows the connections that are older than the status page, of the first phase. The listeners have their rows already. */
export function showOlder(): void {
  inTurns(openHandles(), handles => {
    for (const socket of openSockets(handles)) {
      const { server } = socket as net.Socket & { server?: net.Server | null }
      if (isOwn(socket) || socket.connecting || socket.destroyed || isFast(socket)) continue
      if (!server) showOlderClient(socket, possibleWire())
      else if (!isOwn(server)) {
        showAccepted(socket)
        countTcpAccepted(server)
      }
    }
  })
}

/** A part of its own: only programs with UDP sockets that talk within this host load it. */
function datagrams(): typeof import('../datagram/index.ts') {
  return require('../datagram/index.ts') as typeof import('../datagram/index.ts')
}

function carryDatagrams(peers: Peers): void {
  const carry = (): void => {
    try {
      datagrams().carryDatagrams(peers)
    } catch (error) {
      log('datagrams stay with the kernel: %s', messageOf(error))
    }
  }
  if (!allowsDatagrams()) return
  if (!startsOnTcp()) {
    if (boundHandles.size > 0) carry()
    else watching.onBound = carry
    return
  }
  watching.onLocal = () => {
    watching.onLocal = () => {}
    setImmediate(() => makeHidden(carry))
  }
}

function wrapClient(
  Handle: FastHandleClass,
  peers: Peers,
  routes: Routes,
  exchange: HandleExchange,
): Promoter | undefined {
  const internals = nodeInternals() as NodeInternals
  sending.bridges = {
    isFast: isFastSocket,
    mayReturn,
    returnToTcp: moveToTcpUnread,
    bridge: socket => bridgeOrFail(socket, exchange),
  }
  const dialer = new RouteDialer(peers, internals, exchange, routes)
  provideWrite(nodesWrite())
  const reachesOthers = mayReachHosts() || reasonAgainstFolder(false) === undefined
  const promoter = startsOnTcp() && canPromote() ? new Promoter(peers, routes, exchange) : undefined
  const prototype = net.Socket.prototype as net.Socket & Record<symbol, (handle: object) => void>
  const connect = entries.connect as (...args: unknown[]) => net.Socket

  entries.connect = function (this: FastSocket, ...args: unknown[]): net.Socket {
    node20?.copyOptions(args)
    takeBack(this)
    if (isOwn(this)) return makeHidden(() => connect.apply(this, args))
    const plan = prepareSafely(this, args)
    if (plan instanceof RequiredError) return this.destroy(plan)
    if (plan !== undefined) {
      // Made in this function: then a hook's stack trace of ten frames, as of why-is-node-running, reaches the program's line.
      placeFastHandle(this, new Handle(dialer, plan.isPath), plan.address)
    }
    return connect.apply(this, args)
  }

  for (const owner of [net.Socket.prototype, tls.TLSSocket.prototype]) {
    if (Object.hasOwn(owner, internals.reinitialize)) wrapReinitialize(owner)
  }
  return promoter

  /** Node gives the socket a TCP handle for the next address; this replaces it by a fast one. */
  function wrapReinitialize(owner: object): void {
    const { reinitialize: symbol, isTcp } = internals as NodeInternals
    const reinitialize = (owner as typeof prototype)[symbol] as HandleSetter
    define(owner, symbol, function (this: FastSocket, handle: object): void {
      const startsOver = this.connecting && startsNative(this)
      const isNextAddress = startsOver || (this.connecting && isCandidate(this))
      if (!isNextAddress || !isTcp(handle)) return reinitialize.call(this, handle)
      if (this instanceof tls.TLSSocket && !isUnconnectedTls(this)) renewSession(this, handle, reinitialize)
      else handle.close()
      if (startsOver) startOverTcp(this, exchange, promoter as Promoter)
      else placeFastHandle(this, new Handle(dialer, false))
    })
  }

  function placeFastHandle(socket: FastSocket, fast: FastHandle, host?: string): void {
    fast.socket = socket
    fast.host = host
    exchange(socket, fast.handle)
  }

  /** If the preparation throws, the socket uses TCP. */
  function prepareSafely(socket: FastSocket, args: unknown[]): ConnectTarget | RequiredError | undefined {
    try {
      return prepare(socket, args)
    } catch (error) {
      const target = targetOf(args)
      const reason = fallbackReason('NOT_STARTED', messageOf(error))
      log('a connection is not fast: %s', reason.text)
      return target === undefined ? undefined : fallBack(socket, target, reason)
    }
  }

  /**
   * Prepares the socket to be fast, or records why it cannot be. Returns its target if it needs a fast handle, an error if the
   * policy requires one and it cannot have it.
   */
  function prepare(socket: FastSocket, args: unknown[]): ConnectTarget | RequiredError | undefined {
    const target = targetOf(args)
    if (target === undefined || fastOf(socket._handle) !== undefined) return undefined
    if (socket.connecting && isCandidate(socket)) return undefined
    node20?.warmUpOptionCopies()
    if (target.isPath && promoter !== undefined) noteTarget(socket, target.address)
    const reason = reasonAgainst(socket, target)
    if (reason !== undefined) return fallBack(socket, target, reason)
    if (promoter !== undefined && !startsFast(target, promoter)) {
      promoter.noteConnect(socket, target.address, target.port)
      if (promoter.mayMoveTo(target.address, target.port)) startNative(socket)
      return undefined
    }
    recordCandidate(socket)
    // Node resets a destroyed socket a moment later, and would then close a handle that it finds.
    if (socket.destroyed) Object.assign(socket, { _handle: null, _peername: null, _sockname: null })
    return target
  }

  /** Whether a connection waits for the fast way, or has one at once. */
  function startsFast({ isPath, address, port }: ConnectTarget, promoter: Promoter): boolean {
    if (isPath || promoter.isKnown(address, port) || mayBeDecided(address, port)) return true
    return reachesOthers && mayLeadElsewhere(address, port)
  }

  /** http2 attaches itself to a socket right after the call that connects it. */
  function startNative(socket: FastSocket): void {
    if (isUnconnectedTls(socket)) return startOverTcp(socket, exchange, promoter as Promoter)
    nextTick(() => {
      if (socket.connecting && startsNative(socket)) startOverTcp(socket, exchange, promoter as Promoter)
    })
  }

  function startsNative(socket: FastSocket): boolean {
    return promoter?.hasStarted(socket) === true && isForNativeCode(socket)
  }

  /** The reasons known before the name is resolved. */
  function reasonAgainst(socket: FastSocket, target: ConnectTarget): FallbackReason | undefined {
    const reason = reasonNow()
    if (reason !== undefined) return reason
    // A destroyed TLS socket cannot be connected again, though Node tries.
    const isNew = socket.destroyed && !(socket instanceof tls.TLSSocket)
    // Node remembers for good that the socket had a `BoundSocket`, even if it makes another handle.
    if (socket.destroyed && hasBoundSource(socket)) return fallbackReason('OWN_HANDLE')
    if (socket._handle && !isNew && !isUnconnectedTls(socket)) return fallbackReason('OWN_HANDLE')
    if (target.isBound) return fallbackReason('LOCAL_ADDRESS')
    return dialer.knownReason(target.address, target.port)
  }
}

/** Node's own `_writeGeneric`, below the wrapper of the first phase (light-phase.ts) if there was one. */
function nodesWrite(): SocketInternals['_writeGeneric'] {
  const { _writeGeneric } = net.Socket.prototype as net.Socket & SocketInternals
  return (entries._writeGeneric as typeof _writeGeneric | undefined) ?? _writeGeneric
}

function wrapSocket(promoter: Promoter | undefined): void {
  const prototype = net.Socket.prototype as net.Socket & SocketInternals
  const { _destroy } = prototype
  const _writeGeneric = nodesWrite()
  const resetAndDestroy = entries.resetAndDestroy as () => net.Socket

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
      const fast = fastOf(this._handle)
      if (writev) handleWritev(this)
      if (fast === undefined || this.connecting) {
        if (promoter !== undefined && !this.connecting) promoter.noteWrite(this, lengthOfWrite(writev, data))
        return _writeGeneric.call(this, writev, data, encoding, callback)
      }
      // Node keeps here the data that waits for the connection, and counts it in bytesWritten.
      this._pendingData = null
      this._pendingEncoding = ''
      fast.writeFromSocket(this, writev, data, encoding, callback)
      return undefined
    },
  )

  for (const name of ['_getpeername', '_getsockname'] as const) {
    const getName = entries[name] as () => SocketName
    entries[name] = function (this: FastSocket): SocketName {
      nameFarEnd(this._handle)
      const found = getName.call(this)
      // The peer reports the client's port later: Node must not cache a name without it.
      if (found.address !== undefined && found.port === undefined) this._sockname = null
      return found
    }
  }

  define(prototype, '_destroy', function (this: net.Socket, error: Error | null, callback: () => void): void {
    hideTcp(this)
    forgetAccepted(this)
    _destroy.call(this, error, callback)
  })

  entries.resetAndDestroy = function (this: FastSocket): net.Socket {
    // The bridge cannot pass a reset on: its other side sees an end (decision 0144).
    if (isFarEnd(this._handle)) return this.destroy()
    // Node reports that a pipe cannot be reset.
    const fast = fastOf(this._handle)
    if (fast === undefined || fast.isOnPath) return resetAndDestroy.call(this)
    if (this.connecting) this.once('connect', () => this._reset())
    else this._reset()
    return this
  }
}

/**
 * Where native code takes a socket. `_wrapHandle` is also the only place that shows which socket a TLS socket is put over. A session of http2
 * calls `setNoDelay` right before it takes the handle of a connected socket.
 */
function wrapNative(place?: (socket: FastSocket) => void): void {
  const prototype = tls.TLSSocket.prototype as unknown as { _wrapHandle?: (...args: unknown[]) => unknown }
  const { _wrapHandle } = prototype
  if (_wrapHandle !== undefined)
    define(prototype, '_wrapHandle', function (this: FastSocket, ...args: unknown[]): unknown {
      const [below, handle] = args
      if (!(below instanceof net.Socket) || !handle) return _wrapHandle.apply(this, args)
      if (handle === (below as FastSocket)._handle) {
        place?.(below as FastSocket)
        args[1] = (below as FastSocket)._handle
      }
      noteUpper(this, below, args[1] as object)
      return _wrapHandle.apply(this, args)
    })
  if (place === undefined) return
  const { setNoDelay } = net.Socket.prototype
  define(net.Socket.prototype, 'setNoDelay', function (this: FastSocket, ...args: [boolean?]): net.Socket {
    if (args.length === 0 && isOfHttp2(this)) place(this)
    return setNoDelay.apply(this, args)
  })
}

/** Returns what publishes the listeners anew for which the policy has changed. */
function wrapServer(peers: Peers): () => void {
  const prototype = net.Server.prototype as net.Server & ServerInternals
  const { listen } = prototype
  const _listen2 = entries._listen2 as (...args: unknown[]) => void
  const close = entries.close as (callback?: (error?: Error) => void) => net.Server

  define(prototype, 'listen', function listen_(this: FastServer, ...args: unknown[]): net.Server {
    const port = portOf(args)
    if (port !== undefined && !isOwn(this)) attemptListening(() => yieldHashedPort(port))
    return (listen as (...args: unknown[]) => net.Server).apply(this, args)
  })

  // Only here the real port is known.
  entries._listen2 = function (this: FastServer, ...args: unknown[]): void {
    const isPrimarys = this._handle !== null && hasPlace(args) && primaryOfCluster() !== undefined
    if (isOwn(this)) return makeHidden(() => _listen2.apply(this, args))
    _listen2.apply(this, args)
    publishNow(this, args, isPrimarys)
  }
  publishLate = (server, args) => publishNow(server as FastServer, args, false)

  /** `isAgain`: the policy has changed; the server goes on, whatever it says. */
  function publishNow(
    server: FastServer,
    args: readonly unknown[],
    isPrimarys: boolean,
    isAgain = false,
  ): void {
    if (server._handle === null) return
    node20?.warmUpOptionCopies()
    const { use, because } = decideListener(server)
    noteDecided(server, use, () => publishNow(server, args, isPrimarys, true))
    if (use === 'tcp') {
      const { code = 'POLICY' } = reasonNow() ?? {}
      statusPage().countFallback(code)
      showSlowListener(server, code)
      return log('a listener is not fast: %s: %s', code, because)
    }
    const conclude = (code: FallbackCode | undefined): void => {
      if (code !== undefined) {
        statusPage().countFallback(code)
        log('a listener is not fast: %s: %s', code, fallbackReason(code).text)
      }
      if (use !== 'require' || server._handle === null) return
      if (code === undefined || isAgain) holdTcpClients(server)
      else failListening(server, fallbackReason(code))
    }
    const handle = server._handle
    const isPublished = attemptListening(() => {
      const binding = bindingOf(handle, args[5] as number)
      if (!isPrimarys) return conclude(reasonNow()?.code ?? publish(server, binding, peers))
      const emitListening = isAgain ? () => {} : delayListening(server)
      publishShared(server, binding, peers, code => {
        conclude(code)
        emitListening()
      })
    })
    if (!isPublished) conclude('NOT_STARTED')
  }

  // Newer versions of Node can move a server to another thread; the object left behind no longer listens.
  const move = Object.getOwnPropertySymbols(prototype).find(it => it.description === TRANSFER)
  if (move !== undefined) wrapMove(prototype, move)

  entries.close = function (this: FastServer, callback?: (error?: Error) => void): net.Server {
    emitDelayed(this)
    withdraw(this)
    return close.call(this, callback)
  }
  return publishDecided
}

/** Runs `action`; false if it throws. The server then still listens over TCP. */
function attemptListening(action: () => void): boolean {
  try {
    action()
    return true
  } catch (error) {
    log('a listener is not fast: %s', messageOf(error))
    return false
  }
}

function wrapMove(prototype: object, symbol: symbol): void {
  const move = (prototype as Record<symbol, () => unknown>)[symbol] as () => unknown
  define(prototype, symbol, function (this: FastServer): unknown {
    const moved = move.call(this)
    withdraw(this)
    return moved
  })
}

/** Whether a server is to listen at an address that was asked for, and not on a handle that the program has passed. */
function hasPlace([address, port]: readonly unknown[]): boolean {
  return typeof address === 'string' || (typeof port === 'number' && port >= 0)
}

/** Records why a socket is not fast. Returns an error if the policy is known to require the fast way. */
function fallBack(
  socket: net.Socket,
  target: ConnectTarget,
  reason: FallbackReason,
): RequiredError | undefined {
  const { address, port, isPath } = target
  recordFallback(socket, reason, target, isPath ? 'pipe' : 'tcp')
  if (!isPath) return refuseIfRequired(socket, address, port, reason)
  const { use, because } = decidePath('client', address)
  return use === 'require' ? new RequiredError(reason, { address, port: 0, because }) : undefined
}

/** Where no socket can be fast: records the reason for each, and fails those that the policy requires to be fast. */
function wrapForRecord(reason: FallbackReason): void {
  const close = entries.close as (callback?: (error?: Error) => void) => net.Server
  const connect = entries.connect as (...args: unknown[]) => net.Socket
  const _listen2 = entries._listen2 as (...args: unknown[]) => void
  entries.connect = function (this: net.Socket, ...args: unknown[]): net.Socket {
    node20?.copyOptions(args)
    const target = targetOf(args)
    if (target === undefined || isOwn(this)) recordFallback(this, reason)
    else {
      const error = fallBack(this, target, reason)
      if (error !== undefined) return this.destroy(error)
    }
    return connect.apply(this, args)
  }
  entries._listen2 = function (this: FastServer, ...args: unknown[]): void {
    _listen2.apply(this, args)
    if (isOwn(this) || this._handle === null) return
    if (decideListener(this).use === 'require') failListening(this, reason)
    else showSlowListener(this, reason.code)
  }
  entries.close = function (this: FastServer, callback?: (error?: Error) => void): net.Server {
    hideSlowListener(this)
    return close.call(this, callback)
  }
  watchAccepted(() => false, countTcpAccepted)
}

function portOf(args: readonly unknown[]): number | undefined {
  const [first] = args
  const port = typeof first === 'object' && first !== null ? (first as { port?: unknown }).port : first
  return isPort(port) ? Number(port) : undefined
}
