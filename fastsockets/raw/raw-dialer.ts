/** `connect`: over a channel if one can be had, else over TCP, with the reason on record. */
import { lookup } from 'node:dns/promises'
import net, { isIP } from 'node:net'
import { remoteAddress } from '../bootstrap/remote-hosts.ts'
import { reasonAgainstFastWay, reasonNow } from '../connect/fast-way.ts'
import { reasonOfNoRoom, reasonOfRefusal } from '../connect/peers.ts'
import { askPatiently, forgetRefused, noteRefused } from '../connect/refused-places.ts'
import { MISLED_MAX, Routes } from '../connect/routes.ts'
import type { Reached } from '../connect/worker-group.ts'
import { logConnect } from '../handle/transport.ts'
import { reachableOwnAddress, sourceAddressFor } from '../host/addresses.ts'
import { decide } from '../policy/own-policy.ts'
import { preciseReason, RequiredError } from '../policy/required-error.ts'
import { type FallbackReason, fallbackReason } from '../reasons.ts'
import { showTcpClient } from '../status/tcp-rows.ts'
import type { SocketChannel } from '../stream/socket-channel.ts'
import type { StreamAddresses } from '../stream/stream-addresses.ts'
import type { MessageSocket } from './message-socket.ts'
import { connectPlainly, rawPeers } from './raw-peers.ts'
import { assertOptions, assertSignal, type RawSocket } from './raw-socket.ts'
import { type Made, type SocketType, socketType } from './socket-type.ts'

export interface ConnectOptions {
  readonly port: number
  /** `localhost` if omitted or empty. */
  readonly host?: string
  /** Ends the attempt; the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal
  /** `datagram`: a message socket. The server must have the same type. */
  readonly type?: 'stream'
}

export interface ConnectMessagesOptions extends Omit<ConnectOptions, 'type'> {
  readonly type: 'datagram'
}

type AnySocket = Made<RawSocket> | Made<MessageSocket>

interface Target {
  readonly type: SocketType<RawSocket> | SocketType<MessageSocket>
  readonly address: string
  readonly family: 4 | 6
  readonly port: number
}

const routes = new Routes()

/**
 * Connects to a server, raw or not, relinked or not. Rejects as `node:net` does, with the error of the last address.
 */
export function connect(options: ConnectOptions): Promise<RawSocket>
export function connect(options: ConnectMessagesOptions): Promise<MessageSocket>
export async function connect(
  options: ConnectOptions | ConnectMessagesOptions,
): Promise<RawSocket | MessageSocket> {
  assertOptions(options)
  const { port, host, signal } = options
  const type = socketType(options.type)
  assertPort(port)
  assertSignal(signal)
  signal?.throwIfAborted()
  let failure: unknown
  const places = await resolve(host || 'localhost', signal)
  for (const { address, family } of places) {
    signal?.throwIfAborted()
    try {
      const socket = await connectTo({ type, address, family: family === 6 ? 6 : 4, port }, signal)
      for (const place of places) forgetRefused(place.address, port)
      return socket
    } catch (error) {
      failure = error
    }
  }
  if ((failure as NodeJS.ErrnoException).code === 'ECONNREFUSED')
    for (const { address } of places) noteRefused(address, port)
  throw failure
}

/** At least one address. */
async function resolve(
  host: string,
  signal: AbortSignal | undefined,
): Promise<readonly { address: string; family: number }[]> {
  const family = isIP(host)
  if (family !== 0) return [{ address: host, family }]
  const found = await unlessAborted(lookup(host, { all: true }), signal)
  if (found.length > 0) return found
  const error = new Error(`getaddrinfo ENOTFOUND ${host}`)
  throw Object.assign(error, { code: 'ENOTFOUND', syscall: 'getaddrinfo', hostname: host })
}

/** Settles as `promise` does, or rejects with the signal's reason if that comes first. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason)
    void promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
  })
}

async function connectTo(target: Target, signal: AbortSignal | undefined): Promise<AnySocket> {
  const found = await reach(target, signal)
  logConnect?.('raw, %s port %d: %s', target.address, target.port, outcomeOf(found, target))
  if (!('code' in found)) return found
  signal?.throwIfAborted()
  const { address, port } = target
  const { use, because } = decide('client', address, port)
  if (use === 'require')
    throw new RequiredError(preciseReason(found, address, port), { address, port, because })
  const socket = await connectTcp(target, signal)
  routes.rememberReason(target.address, target.port, found)
  showTcpClient(socket, { transport: 'tcp', reason: found }, target)
  return target.type.makeTcp(socket, found)
}

/** For the log. */
function outcomeOf(found: AnySocket | FallbackReason, { address, port }: Target): string {
  if (!('code' in found)) return String(found.transport)
  const { code, text } = preciseReason(found, address, port)
  return `tcp, ${code}: ${text}`
}

/** A fast socket, or the reason why there is none. */
async function reach(target: Target, signal: AbortSignal | undefined): Promise<AnySocket | FallbackReason> {
  const { family, port } = target
  const reason = reasonAgainstFastWay() ?? reasonNow()
  if (reason !== undefined) return reason
  const { use, because } = decide('client', target.address, port)
  if (use === 'tcp') return fallbackReason('POLICY', because)
  const address = reachableOwnAddress(target.address) ?? remoteAddress(target.address, port)
  if (typeof address !== 'string') return address
  const route = routes.find(target.address, port)
  if (route?.reason !== undefined) return route.reason
  if (route?.channel !== undefined) {
    const opened = await open(route.channel, address, target, signal)
    if (!('code' in opened)) return opened
    // Another process may listen on the port now: call the hashed port anew.
    routes.forget(target.address, port)
  }
  const misled = new Set<SocketChannel>()
  // An aborted search goes on: other connects may wait for it, and the next one finds its channel.
  const ask = (): Promise<Reached | FallbackReason> =>
    unlessAborted(rawPeers().reach(address, port, family, misled.size > 0 ? misled : undefined), signal)
  for (;;) {
    const found = await askPatiently(target.address, port, family, ask)
    if ('code' in found) return found
    const { channel, isShared } = found
    signal?.throwIfAborted()
    const opened = await open(channel, address, target, signal)
    // If several listeners share the port, the kernel or the primary chooses for each connection.
    const isOpen = !('code' in opened)
    if (isOpen && !isShared) routes.rememberChannel(target.address, port, found)
    if (isOpen || opened.code !== 'NOT_LISTENING' || misled.size === MISLED_MAX) return opened
    misled.add(channel)
  }
}

function open(
  channel: SocketChannel,
  address: string,
  { type, port, family }: Target,
  signal: AbortSignal | undefined,
): Promise<AnySocket | FallbackReason> {
  return new Promise((resolve, reject) => {
    const socket = type.makeFast()
    const abort = (): void => {
      reject(signal?.reason)
      socket.close()
    }
    signal?.addEventListener('abort', abort, { once: true })
    const addresses: StreamAddresses = {
      address,
      source: channel.way?.own ?? sourceAddressFor(address),
      family: family === 6 ? 'IPv6' : 'IPv4',
      serverPort: port,
      clientPort: 0,
    }
    const isAsked = socket.open(channel, addresses, (refusal, isConnected) => {
      signal?.removeEventListener('abort', abort)
      resolve(isConnected ? socket : fallbackReason(reasonOfRefusal(refusal)))
    })
    if (isAsked) return
    signal?.removeEventListener('abort', abort)
    resolve(reasonOfNoRoom(channel))
  })
}

function connectTcp({ address, family, port }: Target, signal: AbortSignal | undefined): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    const socket = new net.Socket({ allowHalfOpen: true })
    const settle = (error: unknown): void => {
      signal?.removeEventListener('abort', abort)
      socket.off('error', settle)
      if (error === undefined) return resolve(socket)
      socket.on('error', () => {})
      socket.destroy()
      reject(error)
    }
    const abort = (): void => settle(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    socket.on('error', settle)
    socket.once('connect', () => settle(undefined))
    connectPlainly.call(socket, { host: address, port, family })
  })
}

function assertPort(port: number): void {
  if (Number.isInteger(port) && port > 0 && port <= 0xffff) return
  const error = new RangeError(`port must be within 1..65535, not ${String(port)}`)
  throw Object.assign(error, { code: 'ERR_SOCKET_BAD_PORT' })
}
