/** The fast listeners of this thread: each an ordinary TCP listener (its shadow) with a hashed port beside it. */
import { AsyncResource } from 'node:async_hooks'
import type net from 'node:net'
import { isIP } from 'node:net'
import { reachableOwnAddress, sourceAddressFor } from './addresses.ts'
import { REFUSAL } from './bootstrap/bootstrap-layout.ts'
import { type BootstrapHost, BootstrapServer } from './bootstrap/bootstrap-server.ts'
import type { FastHandleClass } from './fast-handle-contract.ts'
import { nodeInternals, type ServerInternals, type SocketName } from './node-internals.ts'
import type { FallbackCode } from './reasons.ts'
import type { Acceptor } from './socket-channel.ts'
import type { Stream } from './stream.ts'
import { SyntheticPorts } from './synthetic-ports.ts'
import { recordFast } from './transport.ts'

export type FastServer = net.Server & ServerInternals

interface Listener {
  readonly server: FastServer
  /** The server's handle when it began to listen: a cluster primary takes it away, and serves its workers with it. */
  readonly handle: object
  readonly address: string
  readonly family: 4 | 6
  readonly port: number
  readonly ipv6Only: boolean
  /** The asynchronous context of `listen`, in which a plain server's connections arrive, too. */
  readonly scope: AsyncResource
  bootstrap: BootstrapServer | undefined
}

/** Made while this module loads, when no program has a context yet. */
const rootScope = new AsyncResource('FASTSOCKETS')

const byServer = new Map<net.Server, Listener>()
const clientPorts = new SyntheticPorts()

/** Hashed ports that some listener of this thread uses. */
const hashedPorts = new Set<number>()

/**
 * Makes a listening server reachable by the fast way. Returns why it cannot be, if it cannot; it works over TCP then.
 */
export function publish(
  server: FastServer,
  ipv6Only: boolean,
  host: BootstrapHost,
): FallbackCode | undefined {
  const handle = server._handle
  if (handle === null || server._pipeName !== undefined) return 'PIPE'
  if (!nodeInternals()?.isTcp(handle)) return 'CLUSTER'
  const name: SocketName = {}
  if (handle.getsockname(name) !== 0 || name.address === undefined || !name.port) return 'ADDRESS'
  const family = name.family === 'IPv6' ? 6 : 4
  const listener: Listener = {
    server,
    handle,
    address: name.address,
    family,
    port: name.port,
    ipv6Only,
    scope: new AsyncResource('FASTSOCKETSERVER'),
    bootstrap: undefined,
  }
  byServer.set(server, listener)
  // By then 'listening' has been emitted, which is when a cluster primary takes the handle.
  setImmediate(() => withdrawIfTaken(listener)).unref()
  return openBootstrap(listener, host, new Set())
}

export function withdraw(server: net.Server): void {
  const listener = byServer.get(server)
  if (listener === undefined) return
  byServer.delete(server)
  closeBootstrap(listener)
}

/** The program wants to listen on `port` itself: if it is a hashed port of ours, that one moves. */
export function yieldHashedPort(port: number, host: BootstrapHost): void {
  if (!hashedPorts.has(port)) return
  for (const listener of byServer.values()) {
    if (listener.bootstrap?.port !== port) continue
    closeBootstrap(listener)
    openBootstrap(listener, host, new Set([port]))
  }
}

/** Whether a listener of this thread would take a connect to `address`. */
export function findListener(port: number, address: string, family: 4 | 6): Listener | undefined {
  let wildcard: Listener | undefined
  for (const listener of byServer.values()) {
    if (listener.port !== port || withdrawIfTaken(listener)) continue
    if (listener.address === address) return listener
    if (listener.address === '0.0.0.0' && family === 4) wildcard ??= listener
    if (listener.address === '::' && (family === 6 || !listener.ipv6Only)) wildcard ??= listener
  }
  return wildcard
}

/** Whether the listener serves somebody else now, or nobody. */
function withdrawIfTaken(listener: Listener): boolean {
  if (listener.server._handle === listener.handle) return false
  withdraw(listener.server)
  return true
}

/** Takes a peer's CONNECT as the kernel would take a TCP one; Node's own accept path does the rest. */
export function acceptorFor(Handle: FastHandleClass): Acceptor {
  return (stream, port, address, family) => {
    // The peer may say anything; a program will believe these to be addresses of this host.
    if (isIP(address) !== family || reachableOwnAddress(address) !== address) return REFUSAL.NOT_LISTENING
    const listener = findListener(port, address, family)
    if (listener?.server._handle?.onconnection === undefined) return REFUSAL.NOT_LISTENING
    const clientPort = clientPorts.allocate()
    if (clientPort === 0) return REFUSAL.LIMIT
    nameServerSide(stream, listener, address, family, clientPort)
    stream.onClosed = () => clientPorts.release(clientPort)
    return { clientPort, begin: () => beginConnection(listener, stream, Handle) }
  }
}

function beginConnection(listener: Listener, stream: Stream, Handle: FastHandleClass): void {
  // As with a TCP handle that libuv has accepted: 'connection' belongs to `listen`, what follows to nobody's context.
  const handle = rootScope.runInAsyncScope(() => new Handle(undefined))
  listener.scope.runInAsyncScope(() => {
    const shadow = listener.server._handle
    handle.adopt(stream)
    if (shadow?.onconnection === undefined) return handle.close()
    // maxConnections, 'drop', blockList, noDelay, pauseOnConnect: all as for a TCP connection.
    shadow.onconnection(0, handle)
    if (handle.socket !== undefined) recordFast(handle.socket, stream.channel.transport)
  })
}

/** A dual-stack listener sees IPv4 clients at mapped addresses. */
function nameServerSide(
  stream: Stream,
  listener: Listener,
  address: string,
  family: 4 | 6,
  clientPort: number,
): void {
  const isMapped = family === 4 && listener.family === 6
  const prefix = isMapped ? '::ffff:' : ''
  stream.addresses = {
    address: prefix + address,
    source: prefix + sourceAddressFor(address),
    family: listener.family === 6 ? 'IPv6' : 'IPv4',
    serverPort: listener.port,
    clientPort,
  }
}

function openBootstrap(
  listener: Listener,
  host: BootstrapHost,
  avoid: ReadonlySet<number>,
): FallbackCode | undefined {
  const { port, address, family, ipv6Only } = listener
  listener.bootstrap = BootstrapServer.open(port, address, family, ipv6Only, host, avoid)
  if (listener.bootstrap === undefined) return 'PORTS_TAKEN'
  hashedPorts.add(listener.bootstrap.port)
  return undefined
}

function closeBootstrap(listener: Listener): void {
  if (listener.bootstrap === undefined) return
  hashedPorts.delete(listener.bootstrap.port)
  listener.bootstrap.close()
  listener.bootstrap = undefined
}
