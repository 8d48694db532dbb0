/**
 * The first phase of a relinked program (light-start.ts): counts what TCP costs, until it has cost as much as to load the rest
 * (promotion/price.ts), and a peer may be relinked (light-peers.ts). Most programs that live a second never leave this phase, nor do
 * programs whose peers over TCP are not relinked. Loaded with the first socket.
 */
import diagnostics from 'node:diagnostics_channel'
import { createRequire } from 'node:module'
import net from 'node:net'
import { makeHidden } from '../../nic/own-resources.ts'
import { isOwn } from '../../nic/own-sockets.ts'
import { readCoreTimes } from '../../nic/posix/core-times.ts'
import { nextTick, nowMs, setImmediate } from '../../nic/real-time.ts'
import type { FastSocket } from '../handle/fast-handle-contract.ts'
import { define } from '../host/define.ts'
import { KeptContext } from '../host/kept-context.ts'
import { startPhase } from '../host/start-phase.ts'
import { tryLoad } from '../host/try-load.ts'
import { noteTarget } from '../host/unix-targets.ts'
import { isConnection, lengthOfWrite } from '../promotion/connections.ts'
import { askForTurn, handleWritev, takeBack } from '../promotion/next-turn.ts'
import {
  AGAIN_PRICE_MAX_US,
  BYTES_PER_US,
  CONNECT_US,
  DATAGRAM_US,
  IDLE_US_PER_MS,
  READ_US,
  START_PRICE_US,
  writePriceUs,
} from '../promotion/price.ts'
import { ReadWatch } from '../promotion/reads.ts'
import { type ConnectTarget, targetOf } from './connect-target.ts'
import { entries } from './entries.ts'

/** A server that began to listen in this phase. */
export interface LightListener {
  readonly server: net.Server
  /** The arguments of `_listen2`. */
  readonly args: readonly unknown[]
  /** The asynchronous context of `listen`. */
  readonly scope: KeptContext
}

const require = createRequire(import.meta.url)

// Of the arguments of `_listen2`.
const AT_PORT = 1
const AT_FD = 4
const AT_FLAGS = 5

const listeners = new Map<net.Server, LightListener>()
/** Those that relinked clients cannot call, since they have no hashed port. */
const uncallable = new WeakSet<net.Server>()
/** Loaded with the first listener. */
let earlyPorts: typeof import('../bootstrap/early-ports.ts') | undefined

/** If there is a rendezvous folder: sockets that have to do with other containers end the phase at once. */
let folder: typeof import('./light-folder.ts') | undefined

/** Where this thread has connected, by host and port or by path. The oldest is forgotten. */
const destinations = new Map<string, ConnectTarget>()
const DESTINATIONS_MAX = 64
/** One of `uncallable` has accepted a connection, whose client may be relinked. */
let hasUncallableServed = false
/** The program has sent or received datagrams within this host: whether the peer is relinked is known only once the rest is loaded. */
let hasDatagrams = false
let lastTarget: ConnectTarget | undefined
/** Connects: at each power of two this thread looks whether TLS is loaded. */
let connectCount = 0
/** So many connects are paid at once. */
const PAID_TOGETHER = 8

/** By so much, at most, other threads that want the cores raise the price to load the rest. */
const CONTENDED_MAX = 3

let paidUs = 0
let paidAtMs = 0
let priceUs = START_PRICE_US
let onPaid: (() => void) | undefined
/** The rest is loaded in the next turn. */
let isDue = false
/** Since the last look at what was read. */
let writeCount = 0
/** The price of writes that `paidUs` does not hold yet. */
let unpaidUs = 0
const UNPAID_MAX_US = 2000
const reads = new ReadWatch(noteReads, sockets => {
  if (!sockets.some(({ bytesRead }) => bytesRead === 0)) return
  const probe = tryLoad(
    () => require('../bootstrap/held-probe.ts') as typeof import('../bootstrap/held-probe.ts'),
  )
  probe?.probeForHolding(sockets, loadSoon)
})

/** Calls `load` once the price is paid. */
export function beginLightPhase(load: () => void): void {
  if (startPhase.hasFolder)
    folder = tryLoad(() => require('./light-folder.ts') as typeof import('./light-folder.ts'))
  onPaid = load
  watchHttp2()
}

/** A session of http2 calls `setNoDelay` right before it takes the handle of a connected socket. */
function watchHttp2(): void {
  const { setNoDelay } = net.Socket.prototype
  define(net.Socket.prototype, 'setNoDelay', function (this: FastSocket, ...args: [boolean?]): net.Socket {
    if (args.length === 0 && this.listeners('close').some(({ name }) => name === 'socketOnClose'))
      noteNative(this)
    return setNoDelay.apply(this, args)
  })
}

type Wrap = (this: FastSocket, below: FastSocket | null, handle: unknown, ...rest: unknown[]) => unknown
let isWatchingTls = false

/** A program that uses TLS has mostly loaded it before it connects or listens. Node 20 makes the list anew for each look, in 9 us. */
function watchTls(): void {
  if (isWatchingTls) return
  const { moduleLoadList = [] } = process as { moduleLoadList?: readonly string[] }
  if (!moduleLoadList.includes('NativeModule tls')) return
  isWatchingTls = true
  const { prototype } = (require('node:tls') as { TLSSocket: { prototype: { _wrapHandle?: Wrap } } })
    .TLSSocket
  const { _wrapHandle } = prototype
  if (_wrapHandle === undefined) return
  const wrap: Wrap = function (this: FastSocket, below, handle, ...rest) {
    const isTaken = below?._handle && handle === below._handle
    if (isTaken) noteNative(below, this)
    return _wrapHandle.call(this, below, isTaken ? below._handle : handle, ...rest)
  }
  define(prototype, '_wrapHandle', wrap)
}

/** Calls `load` once datagrams have paid the price, in a program that has no light phase. */
export function awaitPrice(load: () => void): void {
  onPaid = load
}

/** The rest is loaded. Returns the servers that listen. */
export function endLightPhase(): LightListener[] {
  onPaid = undefined
  reads.stop()
  diagnostics.unsubscribe('net.server.socket', handleAccepted)
  const all = [...listeners.values()].filter(({ server }) => server.listening)
  listeners.clear()
  destinations.clear()
  return all
}

function handleAccepted(message: unknown): void {
  const { socket } = message as { socket?: net.Socket & { server?: net.Server } }
  if (socket?.server === undefined || !uncallable.has(socket.server)) return
  hasUncallableServed = true
  pay(CONNECT_US)
}

/** True if the connection needs the rest now. */
export function noteConnect(socket: FastSocket, args: readonly unknown[]): boolean {
  takeBack(socket)
  const target = targetOf(args)
  if (target === undefined) return false
  if (folder?.mayBeFast(target)) return true
  if (target.isPath) noteTarget(socket, target.address)
  if (target.port !== lastTarget?.port || target.address !== lastTarget.address) noteDestination(target)
  if (isPowerOfTwo(++connectCount)) watchTls()
  if (connectCount % PAID_TOGETHER === 0) pay(PAID_TOGETHER * CONNECT_US)
  else if (onPaid !== undefined) reads.start()
  return false
}

function isPowerOfTwo(count: number): boolean {
  return (count & (count - 1)) === 0
}

function noteDestination(target: ConnectTarget): void {
  lastTarget = target
  const key = `${target.address} ${target.port}`
  if (destinations.has(key)) return
  watchTls()
  if (destinations.size >= DESTINATIONS_MAX) destinations.delete(destinations.keys().next().value as string)
  destinations.set(key, target)
  priceUs = START_PRICE_US
}

/** Before Node's own `_writeGeneric`. */
export function noteWrite(socket: FastSocket, writev: unknown, data: unknown): void {
  if (!isConnection(socket)) return
  const length = lengthOfWrite(writev, data)
  noteLength(length)
  if (writev === true) handleWritev(socket)
  if (isDue && !socket.connecting) askForTurn(socket, length)
}

/** Writes are paid together, which takes two looks at the clock. */
function noteLength(length: number): void {
  if (unpaidUs === 0 && onPaid !== undefined) reads.start()
  writeCount++
  unpaidUs += writePriceUs(length)
  if (unpaidUs >= UNPAID_MAX_US) payWrites()
}

function payWrites(): void {
  // TCP has taken no longer than the time since the last payment.
  const us = Math.min(unpaidUs, 1000 * (nowMs() - paidAtMs))
  unpaidUs = 0
  pay(us)
}

/** Native code is about to read a connected socket: TLS, whose socket is `upper`, or http2. */
function noteNative(socket: FastSocket, upper?: FastSocket): void {
  if (onPaid === undefined || socket.connecting || isOwn(socket)) return
  const signs = tryLoad(
    () => require('../promotion/native-signs.ts') as typeof import('../promotion/native-signs.ts'),
  )
  if (signs?.mayMoveEarly(socket) !== true) return
  const early = tryLoad(
    () => require('../promotion/early-native.ts') as typeof import('../promotion/early-native.ts'),
  )
  early?.takeEarly(socket, entries._writeGeneric as FastSocket['_writeGeneric'], noteLength, upper)
}

function noteReads(bytes: number, times: number): void {
  payWrites()
  // The price of a write holds that of the answer.
  pay(bytes / BYTES_PER_US + READ_US * Math.max(0, times - writeCount))
  writeCount = 0
}

/** A datagram to or from a loopback address. */
export function noteDatagram(): void {
  hasDatagrams = true
  count(DATAGRAM_US)
}

/** True if the listener needs the rest now. */
export function noteListening(server: net.Server, args: readonly unknown[]): boolean {
  watchTls()
  if (folder?.isForFolder(args)) return true
  // A program that opens and closes servers all the time leaves none here.
  for (const { server: one } of listeners.values()) if (!one.listening) listeners.delete(one)
  listeners.set(server, { server, args, scope: new KeptContext() })
  earlyPorts?.yieldEarlyPort(args[AT_PORT], noteUncallable)
  // Before 'listening' is emitted.
  makeHidden(() => nextTick(openHashedPort, server, args))
  return false
}

/** Clients that need the fast way before the first byte can call it. */
function openHashedPort(server: net.Server, args: readonly unknown[]): void {
  if (onPaid === undefined || !server.listening) return
  if ((args[AT_FD] as number) >= 0) return noteUncallable(server)
  earlyPorts ??= tryLoad(
    () => require('../bootstrap/early-ports.ts') as typeof import('../bootstrap/early-ports.ts'),
  )
  if (earlyPorts?.openEarlyPort(server, args[AT_FLAGS], loadSoon) !== true) noteUncallable(server)
}

/** Its relinked clients cannot make it load the rest: so what its connections cost does. */
function noteUncallable(server: net.Server): void {
  if (onPaid === undefined) return
  uncallable.add(server)
  diagnostics.unsubscribe('net.server.socket', handleAccepted)
  diagnostics.subscribe('net.server.socket', handleAccepted)
}

/** Before Node's own `close`. */
export function noteClosing(server: net.Server): void {
  earlyPorts?.closeEarlyPort(server)
}

/** No bootstrap server has taken them over. */
export function closeLeftPorts(): void {
  earlyPorts?.closeEarlyPorts()
}

function pay(us: number): void {
  if (onPaid === undefined) return
  reads.start()
  count(us)
}

function count(us: number): void {
  const atMs = nowMs()
  paidUs = Math.max(0, paidUs - (atMs - paidAtMs) * IDLE_US_PER_MS) + us
  paidAtMs = atMs
  if (paidUs >= priceUs) handlePaid()
}

/** The price to load the rest now: a thread that gets half of a core takes twice as long to load it. */
function contendedPriceUs(): number {
  const times = readCoreTimes()
  // A kernel that does not keep these times reports zeros.
  if (typeof times !== 'object' || times.ranMs === 0) return START_PRICE_US
  return START_PRICE_US * Math.min(1 + times.waitedMs / times.ranMs, CONTENDED_MAX)
}

function handlePaid(): void {
  priceUs = Math.max(priceUs, contendedPriceUs())
  if (paidUs < priceUs) return
  const peers = tryLoad(() => require('./light-peers.ts') as typeof import('./light-peers.ts'))
  if (hasUncallableServed || hasDatagrams || peers?.mayBeRelinked(destinations.values())) return loadSoon()
  const open = [...listeners.values()].filter(({ server }) => server.listening)
  if (peers?.isForLateFolder(open.map(({ args }) => args))) return loadSoon()
  // A server that is started later is found at the next look.
  paidUs = 0
  priceUs = Math.min(2 * priceUs, AGAIN_PRICE_MAX_US)
}

function loadSoon(): void {
  const load = onPaid
  if (load === undefined) return
  onPaid = undefined
  // Not within a call of the program's.
  isDue = true
  setImmediate(() => {
    isDue = false
    makeHidden(load)
  })
}
