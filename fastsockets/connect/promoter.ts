/**
 * Sockets that start on TCP, and when they become fast (price.ts): what each destination has cost, the search for its channel in
 * the background, and the request to move a connection that exists.
 */
import type net from 'node:net'
import { ablation, isOwn, makeHidden, reasonAgainstFolder } from '../../nic/index.ts'
import { performance } from '../../nic/real-time.ts'
import { neighbourName } from '../bootstrap/neighbours.ts'
import type { FastSocket } from '../handle/fast-handle-contract.ts'
import { endsOfTcp, movableTcp } from '../handle/tcp-below.ts'
import type { HandleExchange } from '../handle/tls-sockets.ts'
import { logConnect, possibleWire, recordPending, recordPossible, recordStart } from '../handle/transport.ts'
import { isReachable, withoutMapping } from '../host/addresses.ts'
import { KeptContext } from '../host/kept-context.ts'
import { PROMOTION } from '../host/unix-paths.ts'
import { allowsDriver, decide } from '../policy/own-policy.ts'
import { addressesOf, textOf } from '../promotion/four-addresses.ts'
import {
  AGAIN_PRICE_MAX_US,
  AGAIN_PRICE_US,
  BYTES_PER_US,
  CONNECT_US,
  FIND_PRICE_US,
  MOVE_PRICE_US,
  writePriceUs,
} from '../promotion/price.ts'
import { PromotedHandle, type Starter, tcpUnder } from '../promotion/promoted-handle.ts'
import { openSockets, ReadWatch } from '../promotion/reads.ts'
import { knownNotesOf, notesOf } from '../status/socket-notes.ts'
import type { SocketChannel } from '../stream/socket-channel.ts'
import { answersAlone, findListener } from './listeners.ts'
import type { Peers } from './peers.ts'
import type { Routes } from './routes.ts'
import { SilentConnections } from './silent-connections.ts'

const PRICE = (ablation('price') ?? 100) / 100
const IS_DIRECT = ablation('no-direct') === undefined
let seed = ablation('price-seed')

function movePriceUs(): number {
  if (seed === undefined) return MOVE_PRICE_US * PRICE
  // A linear congruential generator (Numerical Recipes).
  seed = (seed * 1664525 + 1013904223) % 2 ** 32
  return MOVE_PRICE_US * PRICE * 10 * (seed / 2 ** 32)
}

/** Where connections of this thread go, by what the program calls it. */
class Destination {
  readonly host: string
  readonly port: number
  /** What TCP has cost on the way to it. */
  paidUs = 0
  /** It is looked for, or looked for again, from then on; a failure doubles the way to the next search. */
  priceUs = FIND_PRICE_US * PRICE
  /** Its address, once a channel to it was found. */
  address: string | undefined
  isSearching = false
  /** The last search was in vain. */
  hasFailed = false
  /** What its connections on TCP show: why the last search has found no channel. */
  wire = possibleWire()
  /** The listener is in this thread. */
  isOwn = false
  /** Its listener holds connections over TCP until they move. */
  isRequired = false
  /** No search because of a silent connection before that time. */
  silentSearchMs = 0
  private againUs = AGAIN_PRICE_US

  constructor(host: string, port: number) {
    this.host = host
    this.port = port
  }

  /** Whether its connections may move is found out anew. */
  forget(): void {
    this.address = undefined
    this.isOwn = this.isRequired = this.hasFailed = false
    this.priceUs = Math.min(this.priceUs, this.paidUs + FIND_PRICE_US * PRICE)
    this.wire = possibleWire()
  }

  waitLonger(): void {
    this.priceUs = this.paidUs + this.againUs
    this.againUs = Math.min(2 * this.againUs, AGAIN_PRICE_MAX_US)
  }
}

/** Destinations at a time; the oldest is forgotten. */
const DESTINATIONS_MAX = 1024

/** Silent connections make this thread look for a server at most so often. */
const SILENT_SEARCH_MS = 200

/** What one socket on TCP has cost. */
export class Started {
  readonly destination: Destination
  /** The asynchronous context in which the program connected. */
  readonly scope: KeptContext | undefined
  paidUs = 0
  priceUs = movePriceUs()
  isAsked = false
  /** Of the bytes that the socket has read, those that are paid for. */
  bytesPaid = 0
  /** The handle, if it is ours and has TCP below it. */
  placed: PromotedHandle | undefined

  constructor(destination: Destination, scope: KeptContext | undefined) {
    this.destination = destination
    this.scope = scope
  }
}

export class Promoter implements Starter {
  readonly #peers: Peers
  readonly #routes: Routes
  readonly #exchange: HandleExchange
  readonly #destinations = new Map<string, Destination>()
  readonly #silent = new SilentConnections(socket => this.#handleSilent(socket as FastSocket))

  readonly #reads = new ReadWatch(undefined, sockets => this.#payReads(sockets))

  constructor(peers: Peers, routes: Routes, exchange: HandleExchange) {
    this.#peers = peers
    this.#routes = routes
    this.#exchange = exchange
    this.#reads.start()
    for (const socket of openSockets()) if (!isOwn(socket) && socket.bytesRead === 0) this.#silent.add(socket)
  }

  /** Whether a new connection can be fast at once: there is a channel to the server, or to workers of it. */
  isKnown(host: string, port: number): boolean {
    const { address, isOwn } = this.#destinations.get(keyOf(host, port)) ?? {}
    if (address === undefined || !IS_DIRECT) return false
    if (isOwn) return true
    const route = this.#routes.find(address, port)
    return route?.channel !== undefined || route?.group !== undefined
  }

  hasStarted(socket: object): boolean {
    return startedOf(socket) !== undefined
  }

  /** The program connects over TCP. */
  noteConnect(socket: net.Socket, host: string, port: number): void {
    const destination = this.#destinationOf(host, port)
    destination.paidUs += CONNECT_US
    notesOf(socket).started = new Started(destination, new KeptContext())
    recordStart(socket, { address: host, port }, destination.wire)
    this.#silent.add(socket)
    this.#reads.start()
  }

  /** The program writes to a connected socket over TCP. */
  noteWrite(socket: FastSocket, length: number): void {
    const started = startedOf(socket) ?? this.#meet(socket)
    if (started !== undefined) this.#pay(socket, started, writePriceUs(length))
  }

  handleTcpWrite(handle: PromotedHandle, length: number): void {
    const { socket } = handle
    const started = socket && startedOf(socket)
    if (socket === undefined || started === undefined) return
    started.placed = handle
    // It is back on TCP, where it pays anew.
    if (started.isAsked && handle.mayMove) {
      started.isAsked = false
      started.paidUs = 0
    }
    this.#pay(socket, started, writePriceUs(length))
  }

  /** A connection that native code is going to read: its server is looked for at once. */
  mayMove(handle: PromotedHandle, address: string, port: number, family: 4 | 6): boolean {
    const { socket } = handle
    const started = socket && startedOf(socket)
    if (socket === undefined || started === undefined) return false
    const { destination } = started
    started.placed = handle
    if (!isReachable(address, family) || decide('client', address, port).use === 'tcp') return false
    if (destination.address === undefined && !destination.isSearching)
      void this.#search(destination, socket, address)
    return true
  }

  mayStillMove({ socket }: PromotedHandle): boolean {
    return (socket && startedOf(socket))?.destination.hasFailed === false
  }

  /** Whether our handle is worth its cost: the last search for the server was not in vain. */
  mayMoveTo(host: string, port: number): boolean {
    return this.#destinations.get(keyOf(host, port))?.hasFailed !== true
  }

  /** Connections that exist may move, or not, by the rules as they are now. */
  handleNewPolicy(): void {
    for (const destination of this.#destinations.values()) destination.forget()
  }

  #payReads(sockets: readonly net.Socket[]): void {
    for (const socket of sockets) {
      if (isOwn(socket)) continue
      const started = startedOf(socket) ?? this.#meet(socket as FastSocket)
      if (started === undefined || started.isAsked) continue
      const { bytesRead } = socket
      const us = (bytesRead - started.bytesPaid) / BYTES_PER_US
      started.bytesPaid = bytesRead
      if (us > 0) this.#pay(socket as FastSocket, started, us)
    }
  }

  #pay(socket: FastSocket, started: Started, us: number): void {
    const { destination } = started
    started.paidUs += us
    destination.paidUs += us
    if (destination.isSearching || started.isAsked) return
    if (destination.address === undefined) {
      if (destination.paidUs >= destination.priceUs) void this.#searchPaid(destination, socket)
    } else if (started.paidUs >= started.priceUs) this.#ask(socket, started)
  }

  /** The server may hold the connection until it has moved. */
  #handleSilent(socket: FastSocket): void {
    const started = startedOf(socket) ?? this.#meet(socket)
    if (started === undefined || started.isAsked) return
    const { destination } = started
    if (destination.isRequired) return this.#ask(socket, started)
    const nowMs = performance.now()
    if (destination.address !== undefined || destination.isSearching || nowMs < destination.silentSearchMs)
      return
    destination.silentSearchMs = nowMs + SILENT_SEARCH_MS
    void this.#searchFor(destination, socket).then(() => {
      if (destination.isRequired) this.#ask(socket, started)
    })
  }

  /** A socket that is older than this object, or that a server has accepted. */
  #meet(socket: FastSocket): Started | undefined {
    const notes = notesOf(socket)
    if (notes.isServers) return undefined
    const isAccepted = Boolean((socket as { server?: unknown }).server)
    const ends = isAccepted ? undefined : endsOfTcp(socket._handle, false)
    if (ends === undefined) {
      notes.isServers = true
      return undefined
    }
    const started = new Started(this.#destinationOf(ends.server.address, ends.server.port), undefined)
    notes.started = started
    return started
  }

  #destinationOf(host: string, port: number): Destination {
    const key = keyOf(host, port)
    const known = this.#destinations.get(key)
    if (known !== undefined) return known
    const [oldest] = this.#destinations.keys()
    if (this.#destinations.size >= DESTINATIONS_MAX && oldest !== undefined) this.#destinations.delete(oldest)
    const made = new Destination(host, port)
    this.#destinations.set(key, made)
    return made
  }

  async #searchPaid(destination: Destination, socket: FastSocket): Promise<void> {
    if (!(await this.#searchFor(destination, socket))) destination.waitLonger()
  }

  /** Looks for the channel of the server to which `socket` is connected; false if there is none now. */
  async #searchFor(destination: Destination, socket: FastSocket): Promise<boolean> {
    const address = endsOfTcp(tcpUnder(socket._handle), false)?.server.address
    return address !== undefined && (await this.#search(destination, socket, withoutMapping(address)))
  }

  async #search(destination: Destination, socket: FastSocket, address: string): Promise<boolean> {
    const { port } = destination
    const family = address.includes(':') ? 6 : 4
    const isHere = isReachable(address, family)
    const isPossible = isHere || reasonAgainstFolder(false) === undefined
    if (!isPossible || decide('client', address, port).use === 'tcp') {
      destination.priceUs = Number.POSITIVE_INFINITY
      return true
    }
    if (!isHere && neighbourName({ address, port, family }) === undefined) return false
    const own = isHere ? findListener(port, address, family) : undefined
    if (own !== undefined && answersAlone(own) && allowsDriver('loopback')) {
      destination.isOwn = true
      destination.isRequired = own.isRequired
      destination.address = address
      return true
    }
    destination.isSearching = true
    recordPending(socket)
    const found = await this.#peers.reach(address, port, family)
    destination.isSearching = false
    if (decide('client', address, port).use === 'tcp') {
      destination.priceUs = Number.POSITIVE_INFINITY
      recordPossible(socket, destination.wire)
      return true
    }
    destination.hasFailed = 'code' in found
    const outcome = 'code' in found ? `${found.code}: ${found.text}` : found.channel.transport
    logConnect?.('%s port %d: search for the fast way: %s', address, port, outcome)
    if ('code' in found) destination.wire = possibleWire(found)
    recordPossible(socket, destination.wire)
    if ('code' in found) return false
    destination.isRequired = found.isRequired
    if (found.isShared) this.#routes.groupOf(address, port).meet(found)
    else this.#routes.rememberChannel(address, port, found)
    destination.address = address
    return true
  }

  /** Asks the server to move this connection. */
  #ask(socket: FastSocket, started: Started): void {
    const { destination } = started
    const placed = started.placed?.isClosed === false ? started.placed : undefined
    const channel = this.#channelTo(destination)
    const tcp = placed === undefined ? movableTcp(socket) : placed.mayMove ? placed.tcp : undefined
    const ends = tcp && endsOfTcp(tcp, false)
    started.priceUs *= 2
    if (channel === undefined) {
      destination.address = undefined
      return
    }
    if (tcp === undefined || ends === undefined) return
    started.isAsked = true
    const make = (): PromotedHandle => placed ?? new PromotedHandle(tcp, this.#exchange, socket, this)
    // Hooks know the connection by its TCP handle.
    const makeBelow = (): PromotedHandle => makeHidden(make)
    const handle = started.scope === undefined ? makeBelow() : started.scope.runInAsyncScope(makeBelow)
    const stream = channel.connect(handle, destination.port, textOf(ends), PROMOTION)
    if (stream === undefined) {
      started.isAsked = false
      return
    }
    stream.isPromotion = true
    stream.addresses = addressesOf(ends)
    recordPending(socket)
    handle.ask(stream, isMoved => {
      started.isAsked = isMoved
      const outcome = isMoved ? `moved to ${channel.transport}` : 'tcp, STARTED_ON_TCP: not moved'
      logConnect?.('%s port %d: %s', destination.host, destination.port, outcome)
      if (!isMoved) recordPossible(socket)
    })
  }

  #channelTo({ address, port, isOwn }: Destination): SocketChannel | undefined {
    if (isOwn) return this.#peers.ownChannel()
    const route = address === undefined ? undefined : this.#routes.find(address, port)
    return route?.channel ?? route?.group?.next(() => false)?.channel
  }
}

function startedOf(socket: object): Started | undefined {
  return knownNotesOf(socket)?.started as Started | undefined
}

function keyOf(host: string, port: number): string {
  return `${host} ${port}`
}
