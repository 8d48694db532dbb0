/**
 * The fast listeners of this thread: each has an ordinary TCP or unix listener (its shadow) and a bootstrap beside it.
 */
import { AsyncResource } from 'node:async_hooks'
import type * as net from 'node:net'
import { isDaemonExpected } from '../../nameservice/socket-path.ts'
import { hasFreeDescriptors, isOwnUser, randomBytes } from '../../nic/index.ts'
import { setImmediate } from '../../nic/real-time.ts'
import { LISTENER_ID_SIZE, REFUSAL } from '../bootstrap/bootstrap-layout.ts'
import { type BootstrapHost, BootstrapServer } from '../bootstrap/bootstrap-server.ts'
import { FolderServer } from '../bootstrap/folder-server.ts'
import { mayAskUs, prepareRemote, remoteDrivers } from '../bootstrap/remote-hosts.ts'
import type { FastHandle, FastHandleClass } from '../handle/fast-handle-contract.ts'
import type { HandleExchange } from '../handle/tls-sockets.ts'
import { logConnect, recordFast } from '../handle/transport.ts'
import { isReachable, sourceAddressFor } from '../host/addresses.ts'
import type { Binding } from '../host/listener-binding.ts'
import {
  nodeInternals,
  type ServerInternals,
  type SocketName,
  type TcpHandle,
} from '../host/node-internals.ts'
import { ZERO_IS_A_LIMIT } from '../host/node-versions.ts'
import { publishStep } from '../host/steps.ts'
import { clientPorts } from '../host/synthetic-ports.ts'
import { guard } from '../host/thrown-errors.ts'
import {
  type Asked,
  DATAGRAMS,
  type Family,
  isFileKey,
  PROMOTION,
  UNIX,
  unixKey,
} from '../host/unix-paths.ts'
import { allowsDriver, allowsUser, decide, decidePath } from '../policy/own-policy.ts'
import { nameInRules } from '../policy/unix-names.ts'
import { acceptPromotion, type Servers } from '../promotion/accept-promotion.ts'
import { noteRelinkedClient } from '../promotion/native-starts.ts'
import { type FallbackCode, fallbackReason } from '../reasons.ts'
import { EVENTS, publishEvent } from '../status/events.ts'
import { ACCEPTED_FAST, ACCEPTED_TCP, REFUSED_TCP } from '../status/status-layout.ts'
import { addTo, type StatusRow, statusPage } from '../status/status-page.ts'
import { countClosedListener } from '../stream/closed-listeners.ts'
import type { Acceptor, SocketStream } from '../stream/socket-channel.ts'
import { announce, retract } from './names.ts'
import { hideSlowListener, showSlowListener, slowRowOf } from './slow-listeners.ts'

export type FastServer = net.Server & ServerInternals

/** Accepts the connections of a raw server's listener. */
export interface RawAcceptor {
  hasRoom(): boolean
  accept(stream: SocketStream): void
}

interface Listener extends Binding {
  /** 16 random bytes: a client that shows them has read this listener's greeting. */
  readonly id: Buffer
  readonly idText: string
  readonly server: FastServer
  /**
   * The server's handle when it began to listen. A cluster primary takes this handle away and serves its workers with
   * it.
   */
  readonly handle: TcpHandle
  readonly address: string
  /** The path by which rules and people name a listener on a unix path, where `address` is a key. */
  readonly path?: string
  readonly family: Family
  readonly port: number
  /** The workers of a cluster share the listener, through their primary. */
  readonly isOfCluster: boolean
  /** The policy requires its connections to be fast. */
  readonly isRequired: boolean
  /** The port is reserved in the client-port pool, so that no client gets it. */
  readonly isPortReserved: boolean
  /** The asynchronous context of `listen`, in which a plain server's connections arrive, too. */
  readonly scope: AsyncResource
  readonly host: BootstrapHost
  /** Undefined if connections go to Node's own accept path. */
  readonly raw: RawAcceptor | undefined
  bootstrap: BootstrapServer | undefined
  /** Its socket in the rendezvous folder. */
  inFolder: FolderServer | undefined
  row: StatusRow | undefined
}

/** Clients of a unix path have no port; the protocol needs a number other than 0. */
const NO_PORT = 1

/**
 * Async hooks of the program see this resource. Detectors of open handles do not list it: they list the server's
 * handle.
 */
class ListenerScope extends AsyncResource {
  hasRef(): boolean {
    return false
  }
}

/** Made while this module loads: at that time no program has an asynchronous context. */
const rootScope = new AsyncResource('FASTSOCKETS')

const byServer = new Map<net.Server, Listener>()

/** Hashed ports in use by listeners of this thread. */
const hashedPorts = new Set<number>()

/**
 * Makes a listening server reachable by the fast way. Returns the reason if that is impossible; the server then works
 * over TCP.
 */
export function publish(
  server: FastServer,
  binding: Binding,
  host: BootstrapHost,
  raw?: RawAcceptor,
): FallbackCode | undefined {
  const listener = enter(server, binding, host, raw, false)
  if (typeof listener !== 'string') return openBootstrap(listener, new Set())
  showSlowListener(server, listener)
  return listener
}

/** As `publish`, for a server in a cluster worker. Calls `onDone` when the primary has answered. */
export function publishShared(
  server: FastServer,
  binding: Binding,
  host: BootstrapHost,
  onDone: (code: FallbackCode | undefined) => void,
): void {
  const listener = enter(server, binding, host, undefined, true)
  if (typeof listener !== 'string') return openSharedBootstrap(listener, new Set(), onDone)
  showSlowListener(server, listener)
  onDone(listener)
}

function enter(
  server: FastServer,
  { ipv6Only, isPortShared }: Binding,
  host: BootstrapHost,
  raw: RawAcceptor | undefined,
  isOfCluster: boolean,
): Listener | FallbackCode {
  const handle = server._handle
  if (handle === null) return 'ADDRESS'
  const place = placeOf(server, handle, isOfCluster)
  if (typeof place === 'string') return place
  const scope = new ListenerScope(place.family === UNIX ? 'PIPESERVERWRAP' : 'TCPSERVERWRAP')
  const { address, path, port } = place
  const { use } = path === undefined ? decide('server', address, port) : decidePath('server', path)
  const id = randomBytes(LISTENER_ID_SIZE)
  const listener: Listener = {
    id,
    idText: id.toString('hex'),
    server,
    handle,
    ...place,
    ipv6Only,
    isPortShared,
    isOfCluster,
    isRequired: use === 'require',
    isPortReserved: place.family !== UNIX && clientPorts.reserve(place.port),
    scope,
    host,
    raw,
    bootstrap: undefined,
    inFolder: undefined,
    row: undefined,
  }
  byServer.set(server, listener)
  // By then 'listening' has been emitted; a cluster primary takes the handle in that event.
  setImmediate(() => withdrawIfReplaced(listener)).unref()
  return listener
}

type Place = Pick<Listener, 'address' | 'path' | 'family' | 'port'>

function placeOf(server: FastServer, handle: TcpHandle, isOfCluster: boolean): Place | FallbackCode {
  const path = server._pipeName
  // Node keeps `_pipeName` of an earlier `listen`; but only a pipe's handle lacks `getsockname`.
  if (path !== undefined && handle.getsockname === undefined) {
    const key = unixKey(path)
    return key === undefined ? 'PIPE' : { address: key, path: nameInRules(path), family: UNIX, port: 0 }
  }
  // In a worker the handle is a stand-in, which has its address from the primary.
  if (!nodeInternals()?.isTcp(handle) && !isOfCluster) return 'CLUSTER'
  const { address, family, port } = nameOf(handle)
  if (address === undefined || !port) return 'ADDRESS'
  return { address, family: family === 'IPv6' ? 6 : 4, port }
}

function nameOf(handle: TcpHandle): SocketName {
  const name: SocketName = {}
  return handle.getsockname(name) === 0 ? name : {}
}

export function withdraw(server: net.Server): void {
  hideSlowListener(server)
  const listener = byServer.get(server)
  if (listener === undefined) return
  byServer.delete(server)
  countClosedListener()
  if (listener.isPortReserved) clientPorts.release(listener.port)
  closeBootstrap(listener)
  listener.scope.emitDestroy()
  listener.row?.close()
}

/**
 * The program wants to listen on `port`: if `port` is a hashed port of ours, that bootstrap moves to another candidate.
 */
export function yieldHashedPort(port: number): void {
  if (!hashedPorts.has(port)) return
  for (const listener of byServer.values()) {
    if (listener.bootstrap?.port !== port) continue
    closeBootstrap(listener)
    if (listener.isOfCluster) openSharedBootstrap(listener, new Set([port]), countIfSlow)
    else countIfSlow(openBootstrap(listener, new Set([port])))
  }
}

function countIfSlow(code: FallbackCode | undefined): void {
  if (code !== undefined) statusPage().countFallback(code)
}

/** True if no other process or thread can receive the next connect to the same place. */
export function answersAlone({ isOfCluster, isPortShared }: Listener): boolean {
  return !isOfCluster && !isPortShared
}

/** The listener of this thread, raw or not, that would receive a connect to `address`. */
export function findListener(
  port: number,
  address: string,
  family: Family,
  isRaw = false,
): Listener | undefined {
  let wildcard: Listener | undefined
  for (const listener of byServer.values()) {
    if (listener.port !== port || (listener.raw !== undefined) !== isRaw || withdrawIfReplaced(listener))
      continue
    if (listener.address === address) return listener
    if (listener.address === '0.0.0.0' && family === 4) wildcard ??= listener
    if (listener.address === '::' && (family === 6 || !listener.ipv6Only)) wildcard ??= listener
  }
  return wildcard
}

/** Withdraws the listener if its server has closed, or now has another handle; true if so. */
function withdrawIfReplaced(listener: Listener): boolean {
  if (listener.server._handle === listener.handle) return false
  // The server may already have a newer entry.
  if (byServer.get(listener.server) === listener) withdraw(listener.server)
  return true
}

/** Accepts a peer's CONNECT as the kernel would accept a TCP connection; Node's own accept path does the rest. */
export function acceptorFor(
  Handle: FastHandleClass,
  exchange: HandleExchange,
  acceptDatagrams: Acceptor,
): Acceptor {
  const servers: Servers = {
    scopeOf: server => byServer.get(server)?.scope,
    pathOf: server => byServer.get(server)?.path,
    isPublished,
    show: (server, handle, stream) => {
      const listener = byServer.get(server)
      if (listener === undefined) handle.close()
      else listener.scope.runInAsyncScope(guard, undefined, () => showConnection(listener, handle, stream))
    },
  }
  return (stream, port, address, family, promisedPort) => {
    publishStep('server asked')
    const { peerUid } = stream.channel
    // The channel may be older than the policy.
    if (peerUid !== undefined && !allowsUser(peerUid)) return REFUSAL.OTHER_USER
    if (family === DATAGRAMS) return acceptDatagrams(stream, port, address, family, promisedPort)
    noteRelinkedClient()
    if (family === PROMOTION) return acceptPromotion(stream, port, address, promisedPort, exchange, servers)
    const listener = family === UNIX ? findById(stream, address) : findAsked(stream, port, address, family)
    if (!listener?.server._handle) return REFUSAL.NOT_LISTENING
    if (listener.isOfCluster && wantsNoMore(listener.server)) return REFUSAL.LIMIT
    const begin = (): void => beginConnection(listener, stream, Handle)
    stream.unixPath = listener.path
    if (family === UNIX) {
      stream.channel.portShare.release(promisedPort)
      return { clientPort: promisedPort || NO_PORT, begin }
    }
    const clientPort = promisedPort || stream.channel.portShare.allocate()
    if (clientPort === 0) return REFUSAL.LIMIT
    nameServerSide(stream, listener, address, family, clientPort)
    stream.onClosed = () => stream.channel.portShare.release(clientPort)
    return { clientPort, begin }
  }
}

/** The peer may send any address, and programs trust it to be one of this host: check it. */
function findAsked(
  stream: SocketStream,
  port: number,
  address: string,
  family: Family,
): Listener | undefined {
  if (!isReachable(address, family) || !mayComeFrom(stream, port, address)) return undefined
  return findListener(port, address, family)
}

/**
 * The listener on a unix path whose id the peer shows: its shadow has sent the id to permitted clients only. On a file
 * only processes of our own user pass, because we cannot judge what connect(2) would have answered other users.
 */
function findById({ channel }: SocketStream, idText: string): Listener | undefined {
  for (const listener of byServer.values()) {
    if (listener.family !== UNIX || listener.idText !== idText || withdrawIfReplaced(listener)) continue
    const { peerUid } = channel
    return peerUid === undefined || !isFileKey(listener.address) || isOwnUser(peerUid) ? listener : undefined
  }
  return undefined
}

/**
 * At `maxConnections` the primary gives the connection to another worker; the worker drops it only if it is the only
 * one or has `dropMaxConnection`.
 */
function wantsNoMore(server: FastServer): boolean {
  const { maxConnections, dropMaxConnection } = server as FastServer & { dropMaxConnection?: boolean }
  const isLimited = maxConnections > 0 || (maxConnections === 0 && ZERO_IS_A_LIMIT)
  return isLimited && server._connections >= maxConnections && !dropMaxConnection
}

function beginConnection(listener: Listener, stream: SocketStream, Handle: FastHandleClass): void {
  // As for a TCP handle that libuv accepts: 'connection' runs in the context of `listen`; the handle belongs to the
  // root context.
  const cause = listener.handle.getAsyncId?.() ?? listener.scope.asyncId()
  const handle = rootScope.runInAsyncScope(() => new Handle(undefined, listener.family === UNIX, cause))
  listener.scope.runInAsyncScope(guard, undefined, () => {
    handle.adopt(stream)
    publishStep('server accepted')
    const { source, clientPort } = stream.addresses ?? {}
    logConnect?.('from %s port %d: %s', source, clientPort, stream.channel.transport)
    showConnection(listener, handle, stream)
  })
}

function showConnection(listener: Listener, handle: FastHandle, stream: SocketStream): void {
  const shadow = listener.server._handle
  if (!shadow) return handle.close()
  countFastAccepted(listener)
  // The program may have replaced the callback: Node's native code then accepts and calls nothing.
  if (typeof shadow.onconnection !== 'function') return handle.unref()
  // Node's callback applies maxConnections, 'drop', blockList, noDelay and pauseOnConnect, as for a TCP connection.
  shadow.onconnection(0, handle.handle)
  if (handle.socket !== undefined) recordFast(handle.socket, stream.channel.transport)
}

/** As `acceptorFor`, for raw servers, which have channels of their own. */
export function acceptRaw(
  stream: SocketStream,
  port: number,
  address: string,
  family: Asked,
): ReturnType<Acceptor> {
  if (family === PROMOTION || family === DATAGRAMS || !isReachable(address, family))
    return REFUSAL.NOT_LISTENING
  if (!mayComeFrom(stream, port, address)) return REFUSAL.NOT_LISTENING
  const listener = findListener(port, address, family, true)
  if (listener?.raw === undefined) return REFUSAL.NOT_LISTENING
  const clientPort = listener.raw.hasRoom() ? stream.channel.portShare.allocate() : 0
  if (clientPort === 0) return REFUSAL.LIMIT
  nameServerSide(stream, listener, address, family, clientPort)
  stream.onClosed = () => stream.channel.portShare.release(clientPort)
  const begin = (): void => {
    countFastAccepted(listener)
    listener.raw?.accept(stream)
  }
  return { clientPort, begin }
}

/**
 * A peer elsewhere may connect where it could over TCP: through the rendezvous folder to a listener that is published under
 * that address; on another host to the address that it has called, and to ports that it may ask for.
 */
function mayComeFrom(stream: SocketStream, port: number, address: string): boolean {
  const { way } = stream.channel
  if (way === undefined) return true
  if (way.isThroughFolder) return isPublished(port, address)
  return address === way.own && mayAskUs(way.peer, address, port)
}

function isPublished(port: number, address: string): boolean {
  for (const { port: own, inFolder } of byServer.values())
    if (own === port && inFolder?.addresses.includes(address)) return true
  return false
}

/** Clients on IPv4 have mapped addresses at a dual-stack listener. */
function nameServerSide(
  stream: SocketStream,
  listener: Listener,
  address: string,
  family: Family,
  clientPort: number,
): void {
  const isMapped = family === 4 && listener.family === 6
  const prefix = isMapped ? '::ffff:' : ''
  stream.addresses = {
    address: prefix + address,
    source: prefix + (stream.channel.way?.peer ?? sourceAddressFor(address)),
    family: listener.family === 6 ? 'IPv6' : 'IPv4',
    serverPort: listener.port,
    clientPort,
  }
}

function openBootstrap(listener: Listener, avoid: ReadonlySet<number>): FallbackCode | undefined {
  const closed = reasonToStayClosed()
  if (closed !== undefined) return showClosed(listener, closed)
  const { port, address, family, host } = listener
  const bootstrap = BootstrapServer.open(listener, host, avoid)
  listener.bootstrap = bootstrap
  publishInFolder(listener)
  const reason = bootstrap?.isHashed || (bootstrap && isDaemonExpected()) ? undefined : 'PORTS_TAKEN'
  show(listener, reason)
  if (bootstrap === undefined) return reason
  // Clients of a unix path use neither another host's device nor the name service.
  if (family === UNIX) return reason
  prepareRemote(address)
  hashedPorts.add(bootstrap.port)
  // A name in the name service leads to one listener only.
  if (listener.isPortShared) return reason
  announce(listener, { ...listener, family }, bootstrap.port, host.introduce(port).endpointId.toString('hex'))
  return reason
}

function openSharedBootstrap(
  listener: Listener,
  avoid: ReadonlySet<number>,
  onDone: (code: FallbackCode | undefined) => void,
): void {
  const closed = reasonToStayClosed()
  if (closed !== undefined) return onDone(showClosed(listener, closed))
  BootstrapServer.openShared(listener, listener.host, avoid, bootstrap => {
    // The program may have closed the server before the primary answered.
    if (byServer.get(listener.server) !== listener) {
      bootstrap?.close()
      return onDone(undefined)
    }
    const reason = bootstrap === undefined ? 'PORTS_TAKEN' : undefined
    listener.bootstrap = bootstrap
    publishInFolder(listener)
    show(listener, reason)
    if (bootstrap !== undefined && listener.family !== UNIX) {
      prepareRemote(listener.address)
      hashedPorts.add(bootstrap.port)
    }
    onDone(reason)
  })
}

function publishInFolder(listener: Listener): void {
  const { isOfCluster, isPortShared, host } = listener
  const place = { ...listener, isShared: isOfCluster || isPortShared, handleGone: countClosedListener }
  listener.inFolder = FolderServer.open(place, host)
}

/** Why no other thread can reach a listener; undefined if the policy, the machine and the process allow it. */
function reasonToStayClosed(): FallbackCode | undefined {
  if (!allowsDriver('shm') && remoteDrivers().length === 0) return 'POLICY'
  return hasFreeDescriptors() ? undefined : 'LIMIT'
}

/** Only this thread can reach the listener. */
function showClosed(listener: Listener, reason: FallbackCode): FallbackCode {
  show(listener, reason)
  return reason
}

/** Shows the listener on the status page, with its current bootstrap port; keeps the counts of an earlier row. */
function show(listener: Listener, reason: FallbackCode | undefined): void {
  const { port, bootstrap, row: old } = listener
  const local = { address: listener.path ?? listener.address, port }
  publishEvent(EVENTS.listening, {
    local,
    hashedPort: bootstrap?.port,
    ...(reason && { reason: fallbackReason(reason) }),
  })
  const counted = old?.counts.slice()
  old?.close()
  listener.row = statusPage().open({
    kind: 'listener',
    transport: bootstrap === undefined ? 'tcp' : 'shm',
    role: 'server',
    local,
    remote: { address: '', port: bootstrap?.port ?? 0 },
    ...(reason && { reason }),
  })
  if (counted !== undefined) listener.row.counts.set(counted)
}

/** Counts a client that a server has accepted over TCP. */
export function countTcpAccepted(server: net.Server): void {
  const row = byServer.get(server)?.row ?? slowRowOf(server)
  if (row !== undefined) addTo(row.counts, ACCEPTED_TCP, 1)
}

/** Counts a client over TCP that was reset because the policy requires the fast way. */
export function countRefused(server: net.Server): void {
  const row = byServer.get(server)?.row ?? slowRowOf(server)
  if (row !== undefined) addTo(row.counts, REFUSED_TCP, 1)
}

function countFastAccepted({ row }: Listener): void {
  if (row !== undefined) addTo(row.counts, ACCEPTED_FAST, 1)
}

function closeBootstrap(listener: Listener): void {
  listener.inFolder?.close()
  listener.inFolder = undefined
  if (listener.bootstrap === undefined) return
  const { port } = listener.bootstrap
  listener.bootstrap.close()
  listener.bootstrap = undefined
  // Listeners on 127.0.0.1 and on ::1 may have the same hashed port.
  if (![...byServer.values()].some(({ bootstrap }) => bootstrap?.port === port)) hashedPorts.delete(port)
  retract(listener)
}
