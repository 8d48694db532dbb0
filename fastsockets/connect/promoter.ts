/**
 * Sockets that start on TCP, and when they become fast (price.ts): what each destination has cost, the search for its channel in
 * the background, and the request to move a connection that exists.
 */
import type net from 'node:net'
import { ablation, isOwn, makeHidden, peerInode, reasonAgainstFolder } from '../../nic/index.ts'
import { performance } from '../../nic/performance.ts'
import { setImmediate } from '../../nic/real-time.ts'
import { REFUSAL } from '../bootstrap/bootstrap-layout.ts'
import { hashedPorts } from '../bootstrap/hashed-port.ts'
import { askWhetherHeld } from '../bootstrap/held-probe.ts'
import { neighbourName } from '../bootstrap/neighbours.ts'
import type { FastSocket } from '../handle/fast-handle-contract.ts'
import { type ConnectedTcp, endsOfTcp, inodeOf, isOverPath, movableTcp } from '../handle/tcp-below.ts'
import type { HandleExchange } from '../handle/tls-sockets.ts'
import { logConnect, possibleWire, recordPending, recordPossible, recordStart } from '../handle/transport.ts'
import { isReachable, reachableOwnAddress, withoutMapping } from '../host/addresses.ts'
import { inTurns } from '../host/in-turns.ts'
import { KeptContext } from '../host/kept-context.ts'
import { isListened } from '../host/kernel-sockets.ts'
import { type Family, PROMOTION, UNIX, unixKey } from '../host/unix-paths.ts'
import { targetPath } from '../host/unix-targets.ts'
import { allowsDriver, decide, decidePath } from '../policy/own-policy.ts'
import { nameInRules } from '../policy/unix-names.ts'
import { promotedOf, tcpUnder } from '../promotion/find-promoted.ts'
import { addressesOf, textOf } from '../promotion/four-addresses.ts'
import type { NativeStarter } from '../promotion/native-starts.ts'
import { askForTurn } from '../promotion/next-turn.ts'
import {
  AGAIN_PRICE_MAX_US,
  AGAIN_PRICE_US,
  BYTES_PER_US,
  CONNECT_US,
  FIND_PRICE_US,
  MOVE_PRICE_US,
  writePriceUs,
} from '../promotion/price.ts'
import { PromotedHandle } from '../promotion/promoted-handle.ts'
import { openHandles, openSockets, ReadWatch } from '../promotion/reads.ts'
import { type FallbackReason, fallbackReason } from '../reasons.ts'
import { knownNotesOf, notesOf } from '../status/socket-notes.ts'
import { statusPage } from '../status/status-page.ts'
import type { SocketChannel } from '../stream/socket-channel.ts'
import { answersAlone, findListener } from './listeners.ts'
import { type Peers, reasonOfRefusal } from './peers.ts'
import type { Routes } from './routes.ts'
import { SilentConnections } from './silent-connections.ts'
import type { WorkerGroup } from './worker-group.ts'

const PRICE = (ablation('price') ?? 100) / 100
const IS_DIRECT = ablation('no-direct') === undefined
let seed = ablation('price-seed')

function movePriceUs(): number {
  if (seed === undefined) return MOVE_PRICE_US * PRICE
  // A linear congruential generator (Numerical Recipes).
  seed = (seed * 1664525 + 1013904223) % 2 ** 32
  return MOVE_PRICE_US * PRICE * 10 * (seed / 2 ** 32)
}

/** As the dialer has it for unix paths. */
const NO_PORT = 0

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
  /** The kernel shows no sign of Fast Sockets there; it is not asked again before that time. */
  lookMs = 0
  /** Requests to move that the server had not answered when this turn began. */
  askedCount = 0
  /** Of them those that it has answered in this turn. */
  answeredCount = 0
  /** Fewer while the server puts requests off. */
  askedMax = ASKED_MAX
  /** Sockets that ask next. */
  readonly waiting: FastSocket[] = []
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

  get isPath(): boolean {
    return this.port === NO_PORT
  }

  waitLonger(): void {
    this.priceUs = this.paidUs + this.againUs
    this.againUs = Math.min(2 * this.againUs, AGAIN_PRICE_MAX_US)
  }
}

/** Destinations at a time; the oldest is forgotten. */
const DESTINATIONS_MAX = 1024

/**
 * Requests to move that a server has at a time, and that are answered in one turn. A move takes some 0.1 ms at each end, and those of a
 * burst come together: so no turn of either event loop is longer than some milliseconds for them.
 */
const ASKED_MAX = 64
/** Calls of the hashed port to find the worker that has a connection. */
const EXPLORED_MAX = 8

/** For so long a server without a hashed port is taken for one that is not relinked. */
const LOOK_MS = 1000

/** Silent connections make this thread look for a server at most so often. */
const SILENT_SEARCH_MS = 200

const NOT_ASKED: ReadonlySet<SocketChannel> = new Set()
const NATIVE = fallbackReason('NOT_MOVABLE', 'native code, or a buffer of the program, reads it here')
/** Its server would refuse; and another process may have had the port when the connection was made. */
const OTHER_USER = fallbackReason('OTHER_USER')
const UNKNOWN = fallbackReason(
  'NOT_MOVABLE',
  'the server does not find it: behind a NAT or proxy, or read by native code there',
)

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

export class Promoter implements NativeStarter {
  readonly #peers: Peers
  readonly #routes: Routes
  readonly #exchange: HandleExchange
  readonly #destinations = new Map<string, Destination>()
  /** The last one found: a direct connection then builds no key. */
  #last: Destination | undefined
  readonly #silent = new SilentConnections(socket => this.#handleSilent(socket as FastSocket))

  readonly #reads = new ReadWatch(undefined, sockets => this.#payReads(sockets))

  constructor(peers: Peers, routes: Routes, exchange: HandleExchange) {
    this.#peers = peers
    this.#routes = routes
    this.#exchange = exchange
    this.#reads.start()
    inTurns(openHandles(), part => {
      for (const socket of openSockets(part))
        if (!isOwn(socket) && socket.bytesRead === 0) this.#silent.add(socket)
    })
  }

  /** Whether a new connection can be fast at once: there is a channel to the server, or to workers of it. */
  isKnown(host: string, port: number): boolean {
    const { address, isOwn } = this.#find(host, port) ?? {}
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
    if (started === undefined) return
    this.#pay(socket, started, writePriceUs(length))
    if (isUnderWay(started)) askForTurn(socket, length)
  }

  handleTcpWrite(handle: PromotedHandle, length: number): boolean {
    const { socket } = handle
    const started = socket && (startedOf(socket) ?? this.#meet(socket))
    if (socket === undefined || started === undefined) return false
    started.placed = handle
    // It is back on TCP, where it pays anew.
    if (started.isAsked && handle.mayMove) {
      started.isAsked = false
      started.paidUs = 0
    }
    this.#pay(socket, started, writePriceUs(length))
    return isUnderWay(started)
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
    return this.#find(host, port)?.hasFailed !== true
  }

  /** Native code is about to read a connected socket: whether its server has a channel, or the kernel shows that it is relinked. */
  mayMoveLater(socket: FastSocket): boolean {
    const started = startedOf(socket) ?? this.#meet(socket)
    if (started === undefined || started.isAsked) return false
    const { destination } = started
    if (destination.address !== undefined) return true
    const { address, port } = endsOfTcp(socket._handle, false)?.server ?? {}
    const nowMs = performance.now()
    if (address === undefined || port === undefined || destination.hasFailed || nowMs < destination.lookMs)
      return false
    destination.lookMs = nowMs + LOOK_MS
    const plain = withoutMapping(address)
    if (!isReachable(plain, plain.includes(':') ? 6 : 4) || decide('client', plain, port).use === 'tcp')
      return false
    const isShown = isListened(hashedPorts(port)) === true
    if (isShown) destination.lookMs = 0
    return isShown
  }

  /** Connections that exist may move, or not, by the rules as they are now. */
  handleNewPolicy(): void {
    for (const destination of this.#destinations.values()) destination.forget()
  }

  #payReads(sockets: readonly net.Socket[]): void {
    for (const socket of sockets) {
      if (isOwn(socket)) continue
      const started = startedOf(socket) ?? this.#meet(socket as FastSocket)
      // During a search they wait for a later look: the connection may read nothing afterwards, and would never move.
      if (started === undefined || isUnderWay(started)) continue
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
    } else if (started.paidUs >= started.priceUs) this.#askSoon(socket, started)
  }

  /** The server may hold the connection until it has moved. */
  #handleSilent(socket: FastSocket): void {
    const started = startedOf(socket) ?? this.#meet(socket)
    if (started === undefined || started.isAsked) return
    const { destination } = started
    // A listener on a path holds none.
    if (destination.isPath) return
    if (destination.isRequired) return this.#askSoon(socket, started)
    const nowMs = performance.now()
    if (destination.address !== undefined || destination.isSearching || nowMs < destination.silentSearchMs)
      return
    destination.silentSearchMs = nowMs + SILENT_SEARCH_MS
    const search = (): void =>
      void this.#searchFor(destination, socket).then(() => {
        if (destination.isRequired) this.#askSoon(socket, started)
      })
    const { address } = endsOfTcp(tcpUnder(socket._handle), false)?.server ?? {}
    if (address === undefined || reachableOwnAddress(withoutMapping(address)) === undefined) search()
    else askWhetherHeld(address, destination.port, search)
  }

  /** A socket that is older than this object, or that a server has accepted. */
  #meet(socket: FastSocket): Started | undefined {
    const notes = notesOf(socket)
    if (notes.isServers) return undefined
    const isAccepted = Boolean((socket as { server?: unknown }).server)
    const below = promotedOf(socket._handle)?.tcp ?? socket._handle
    const ends = isAccepted ? undefined : endsOfTcp(below, false)
    const path = !isAccepted && isOverPath(below) ? targetPath(socket) : undefined
    if (ends === undefined && path === undefined) {
      notes.isServers = true
      return undefined
    }
    const { address, port } = ends?.server ?? { address: path as string, port: NO_PORT }
    const started = new Started(this.#destinationOf(address, port), undefined)
    notes.started = started
    return started
  }

  /** Of a path the port is `NO_PORT`. */
  #destinationOf(host: string, port: number): Destination {
    const known = this.#find(host, port)
    if (known !== undefined) return known
    const [oldest] = this.#destinations.keys()
    if (this.#destinations.size >= DESTINATIONS_MAX && oldest !== undefined) this.#destinations.delete(oldest)
    const made = new Destination(host, port)
    this.#destinations.set(keyOf(host, port), made)
    this.#last = made
    return made
  }

  #find(host: string, port: number): Destination | undefined {
    const last = this.#last
    if (last?.port === port && last.host === host) return last
    const found = this.#destinations.get(keyOf(host, port))
    if (found !== undefined) this.#last = found
    return found
  }

  async #searchPaid(destination: Destination, socket: FastSocket): Promise<void> {
    if (!(await this.#searchFor(destination, socket))) destination.waitLonger()
  }

  /** Looks for the channel of the server to which `socket` is connected; false if there is none now. */
  async #searchFor(destination: Destination, socket: FastSocket): Promise<boolean> {
    if (destination.isPath) return await this.#searchPath(destination, socket)
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
    return await this.#reach(destination, socket, address, family)
  }

  /** The same for a server on a unix path. */
  async #searchPath(destination: Destination, socket: FastSocket): Promise<boolean> {
    const { host: path } = destination
    const key = unixKey(path)
    if (key === undefined || decidePath('client', path).use === 'tcp') {
      destination.priceUs = Number.POSITIVE_INFINITY
      return true
    }
    const own = findListener(NO_PORT, key, UNIX)
    if (own === undefined || !answersAlone(own) || !allowsDriver('loopback'))
      return await this.#reach(destination, socket, key, UNIX)
    destination.isOwn = true
    destination.address = key
    return true
  }

  async #reach(
    destination: Destination,
    socket: FastSocket,
    address: string,
    family: Family,
  ): Promise<boolean> {
    const { port } = destination
    destination.isSearching = true
    recordPending(socket)
    const found = await this.#peers.reach(address, port, family)
    destination.isSearching = false
    const { use } = family === UNIX ? decidePath('client', destination.host) : decide('client', address, port)
    if (use === 'tcp') {
      destination.priceUs = Number.POSITIVE_INFINITY
      recordPossible(socket, destination.wire)
      return true
    }
    destination.hasFailed = 'code' in found
    const outcome = 'code' in found ? `${found.code}: ${found.text}` : found.channel.transport
    logConnect?.('%s port %d: search for the fast way: %s', address, port, outcome)
    if ('code' in found) {
      destination.wire = possibleWire(found)
      statusPage().countRefusal(found.code)
    }
    recordPossible(socket, destination.wire)
    if ('code' in found) return false
    destination.isRequired = found.isRequired
    if (found.isShared) this.#routes.groupOf(address, port).meet(found)
    else this.#routes.rememberChannel(address, port, found)
    destination.address = address
    return true
  }

  /** Asks the server to move this connection, at once or once others have their answer. */
  #askSoon(socket: FastSocket, started: Started): void {
    const { destination } = started
    started.isAsked = true
    started.priceUs *= 2
    if (destination.askedCount < destination.askedMax) this.#ask(socket, started, NOT_ASKED)
    else destination.waiting.push(socket)
  }

  /** An answer is there. Others ask in the next turn. */
  #handleAnswer(destination: Destination): void {
    if (destination.answeredCount++ > 0) return
    makeHidden(() =>
      setImmediate(() => {
        destination.askedCount -= destination.answeredCount
        destination.answeredCount = 0
        this.#askNext(destination)
      }),
    )
  }

  #askNext(destination: Destination): void {
    while (destination.askedCount < destination.askedMax) {
      const socket = destination.waiting.shift()
      const started = socket && startedOf(socket)
      if (socket === undefined) return
      if (started !== undefined && !socket.destroyed) this.#ask(socket, started, NOT_ASKED)
    }
  }

  /** `passed`: workers of a cluster that do not have the connection. */
  #ask(socket: FastSocket, started: Started, passed: ReadonlySet<SocketChannel>): void {
    const { destination } = started
    const placed = started.placed?.isClosed === false ? started.placed : undefined
    const tcp = placed === undefined ? movableTcp(socket) : placed.mayMove ? placed.tcp : undefined
    const ends = tcp && endsOfTcp(tcp, false)
    const name = ends === undefined ? tcp && nameOfPath(tcp) : textOf(ends)
    if (tcp === undefined || name === undefined) {
      const isNative = placed === undefined && !socket.destroyed && !socket.connecting
      return this.#stay(socket, started, isNative ? NATIVE : undefined)
    }
    const channel = this.#channelTo(destination, passed)
    if (channel === undefined) {
      destination.address = undefined
      return this.#stay(socket, started, undefined)
    }
    if (!channel.isOfOwnUser) return this.#stay(socket, started, OTHER_USER)
    const make = (): PromotedHandle => placed ?? new PromotedHandle(tcp, this.#exchange, socket, this)
    // Hooks know the connection by its TCP handle.
    const makeBelow = (): PromotedHandle => makeHidden(make)
    const handle = started.scope === undefined ? makeBelow() : started.scope.runInAsyncScope(makeBelow)
    const stream = channel.connect(handle, destination.port, name, PROMOTION)
    if (stream === undefined) return this.#stay(socket, started, fallbackReason('LIMIT'))
    stream.isPromotion = true
    if (ends === undefined) stream.unixPath = nameInRules(destination.host)
    else stream.addresses = addressesOf(ends)
    recordPending(socket)
    destination.askedCount++
    handle.ask(stream, (isMoved, refusal) => {
      const outcome = isMoved ? `moved to ${channel.transport}` : 'tcp, STARTED_ON_TCP: not moved'
      logConnect?.('%s port %d: %s', destination.host, destination.port, outcome)
      this.#handleAnswer(destination)
      // The server goes through its connections first: it is asked for one at a time meanwhile.
      const isPutOff = refusal === REFUSAL.LATER
      destination.askedMax = isPutOff ? 1 : ASKED_MAX
      if (isPutOff) return void destination.waiting.push(socket)
      if (!isMoved && refusal === REFUSAL.NOT_LISTENING)
        this.#askAnother(socket, started, new Set([...passed, channel]))
      else if (!isMoved)
        this.#stay(
          socket,
          started,
          refusal === undefined ? undefined : fallbackReason(reasonOfRefusal(refusal)),
        )
    })
  }

  /** The connection is of another worker of the same listener, or behind a NAT or proxy. */
  #askAnother(socket: FastSocket, started: Started, passed: ReadonlySet<SocketChannel>): void {
    const { destination } = started
    const group = this.#groupOf(destination)
    if (group === undefined) return this.#stay(socket, started, UNKNOWN)
    void this.#meetWorkers(socket, destination, group, passed).then(isMet => {
      if (isMet && !socket.destroyed) this.#ask(socket, started, passed)
      else this.#stay(socket, started, UNKNOWN)
    })
  }

  /** Calls the hashed port until a worker answers that was not asked; false if there seems to be none. */
  async #meetWorkers(
    socket: FastSocket,
    destination: Destination,
    group: WorkerGroup,
    passed: ReadonlySet<SocketChannel>,
  ): Promise<boolean> {
    const isPassed = (channel: SocketChannel): boolean => passed.has(channel)
    for (let i = 0; i < EXPLORED_MAX && group.next(isPassed) === undefined && !group.isComplete; i++)
      await this.#searchFor(destination, socket)
    return group.next(isPassed) !== undefined
  }

  /** The connection stays on TCP for now; without a reason it has ended, or is asked again soon. */
  #stay(socket: FastSocket, started: Started, reason: FallbackReason | undefined): void {
    started.isAsked = false
    if (reason !== undefined) statusPage().countRefusal(reason.code)
    recordPossible(socket, possibleWire(reason))
  }

  #groupOf({ address, port }: Destination): WorkerGroup | undefined {
    return address === undefined ? undefined : this.#routes.find(address, port)?.group
  }

  #channelTo(destination: Destination, passed: ReadonlySet<SocketChannel>): SocketChannel | undefined {
    const { address, port, isOwn } = destination
    if (isOwn) return this.#peers.ownChannel()
    const route = address === undefined ? undefined : this.#routes.find(address, port)
    return route?.channel ?? route?.group?.next(channel => passed.has(channel))?.channel
  }
}

function isUnderWay({ isAsked, destination }: Started): boolean {
  return isAsked || destination.isSearching
}

function startedOf(socket: object): Started | undefined {
  return knownNotesOf(socket)?.started as Started | undefined
}

function keyOf(host: string, port: number): string {
  return `${host} ${port}`
}

/** As the server knows a connection over a path: by the inode of its end. */
function nameOfPath(tcp: ConnectedTcp): string | undefined {
  const inode = inodeOf(tcp)
  const peer = inode === undefined ? undefined : peerInode(inode)
  return peer === undefined ? undefined : String(peer)
}
