/**
 * Decides, for each connect, between a fast channel and TCP, and carries it out. The program keeps its socket object;
 * only the handle below changes.
 */
import { setImmediate } from '../../nic/real-time.ts'
import { greetingTimeoutMs } from '../bootstrap/bootstrap-client.ts'
import { REFUSAL } from '../bootstrap/bootstrap-layout.ts'
import { remoteAddress } from '../bootstrap/remote-hosts.ts'
import type { Dialer, FastHandle, FastSocket } from '../handle/fast-handle-contract.ts'
import { type HandleExchange, keepStreamState } from '../handle/tls-sockets.ts'
import { logConnect, recordFallback, recordFast, recordRefused } from '../handle/transport.ts'
import { reachableOwnAddress, sourceAddressFor } from '../host/addresses.ts'
import { noteAsked } from '../host/io-turns.ts'
import { keptGlobals } from '../host/kept-globals.ts'
import {
  type ConnectRequest,
  callIfFunction,
  complete,
  type NodeInternals,
  type PipeHandle,
  type TcpHandle,
} from '../host/node-internals.ts'
import { UV_ECONNREFUSED, UV_ECONNRESET } from '../host/socket-errors.ts'
import { publishStep } from '../host/steps.ts'
import { type Family, UNIX, unixKey } from '../host/unix-paths.ts'
import { allowsDriver, decide, decidePath, ownPolicy } from '../policy/own-policy.ts'
import { type Decision, NO_POLICY } from '../policy/policy.ts'
import { explainFailure, preciseReason, type Required } from '../policy/required-error.ts'
import { nameInRules } from '../policy/unix-names.ts'
import { type FallbackReason, fallbackReason } from '../reasons.ts'
import type { Place } from '../status/status-page.ts'
import type { SocketChannel, SocketStream } from '../stream/socket-channel.ts'
import { STREAMS_MAX } from '../stream/stream-layout.ts'
import { messageOf, reasonNow } from './fast-way.ts'
import { answersAlone, findListener } from './listeners.ts'
import { type Peers, reasonOfNoRoom, reasonOfRefusal } from './peers.ts'
import { askPatiently, forgetRefused, noteRefused } from './refused-places.ts'
import { type ChannelRoute, lasts, MISLED_MAX, type Routes } from './routes.ts'
import { isUnanswered, UnansweredConnects } from './unanswered-connects.ts'
import type { Reached, WorkerGroup } from './worker-group.ts'

/** A connect without the server's answer counts as made after this time (decision 0111): as long as for a greeting. */
const BUSY_MS = greetingTimeoutMs()
/** The same while only a greeting says that the server has the listener: a stranger may have copied it. */
const UNPROVEN_BUSY_MS = Math.max(1000, BUSY_MS)
/** After this many refusals by workers of a cluster the connection uses TCP. */
const EXPLORED_MAX = 8
/** Messages handled at once while looking for answers: as many as there may be sockets. */
const ANSWERS_MAX = STREAMS_MAX

interface Attempt {
  readonly request: ConnectRequest
  readonly address: string
  readonly port: number
  readonly family: Family
  /** The listener is in this thread. */
  isOwn: boolean
  /**
   * No listener of this thread existed when the connect began. Node's connect would then have been refused, so a
   * listener that appears later does not count.
   */
  readonly hasNoOwn: boolean
  /** The route comes from a greeting of this attempt, not from the cache. */
  isFresh: boolean
  /** Channels to which a greeting has led, and whose peers do not know the listener. */
  misled: Set<SocketChannel> | undefined
  /**
   * Only for a listener that is not shared: the route, the peer's count of closed listeners just before the CONNECT,
   * and when the program may be notified without an answer, as `lookCount` counts.
   */
  route: ChannelRoute | undefined
  listenersClosed: number | undefined
  notifiedAt: number
  /** Only for a shared listener: the worker that was asked, and those that have refused. */
  asked: SharedRoute | undefined
  refusedBy: Set<SocketChannel> | undefined
  /** How often the hashed port was called again because workers refused. */
  exploredCount: number
}

/** The last address that the kernel refused, and the socket that was connecting to it. */
interface Refused {
  readonly socket: WeakRef<FastSocket>
  readonly address: string
  readonly port: number
}

interface SharedRoute {
  readonly group: WorkerGroup
  readonly channel: SocketChannel
  readonly noteAnswer: () => void
}

export class RouteDialer implements Dialer {
  readonly #peers: Peers
  readonly #internals: NodeInternals
  readonly #routes: Routes
  readonly #exchange: HandleExchange
  #refused: Refused | undefined
  readonly #unanswered = new UnansweredConnects(BUSY_MS, presumeIfUnanswered)
  readonly #unproven = new UnansweredConnects(UNPROVEN_BUSY_MS, presumeIfUnanswered)

  constructor(peers: Peers, internals: NodeInternals, exchange: HandleExchange, routes: Routes) {
    this.#peers = peers
    this.#routes = routes
    this.#internals = internals
    this.#exchange = exchange
  }

  /**
   * Why a connect to `host`, as the program names it, need not try the fast way now; undefined if it should. For a
   * server that is known not to be relinked this look-up is the only cost.
   */
  knownReason(host: string, port: number): FallbackReason | undefined {
    // Rules of a policy may name addresses: before the name is resolved no decision is possible.
    return ownPolicy() === NO_POLICY ? this.#routes.find(host, port)?.reason : undefined
  }

  dial(handle: FastHandle, request: ConnectRequest, address: string, port: number, family: Family): number {
    const { use, because } = decideOn(handle, address, port, family)
    if (use === 'tcp')
      return this.#demote(handle, request, address, port, family, fallbackReason('POLICY', because))
    const now = reasonNow()
    if (now !== undefined) return this.#demote(handle, request, address, port, family, now)
    const here = family === UNIX ? unixKey(address) : reachableOwnAddress(address)
    const target = here ?? (family === UNIX ? undefined : this.#elsewhere(address, port))
    if (typeof target !== 'string') {
      if (family === UNIX) noteRefused(address, port)
      const reason = target ?? fallbackReason('PIPE')
      return this.#demote(handle, request, address, port, family, reason)
    }
    if (this.#refused !== undefined) this.#noteNextAddress(handle, request, this.#refused)
    // A wildcard listener of this thread does not listen on addresses of other hosts.
    const own = here === undefined ? undefined : findListener(port, here, family)
    const attempt: Attempt = {
      request,
      address: target,
      port,
      family,
      isOwn: false,
      hasNoOwn: here !== undefined && own === undefined,
      isFresh: false,
      misled: undefined,
      route: undefined,
      listenersClosed: undefined,
      notifiedAt: Number.NaN,
      asked: undefined,
      refusedBy: undefined,
      exploredCount: 0,
    }
    handle.attempt = attempt
    if (own !== undefined && answersAlone(own) && allowsDriver('loopback')) {
      attempt.isOwn = true
      const said = family === UNIX ? own.idText : target
      if (this.#open(handle, this.#peers.ownChannel(), said, attempt)) return 0
    }
    attempt.isOwn = false
    const route = this.#routes.find(target, port)
    if (route?.channel !== undefined && this.#openPatiently(handle, route, attempt)) return 0
    if (route?.group !== undefined && this.#openShared(handle, route.group, attempt)) return 0
    if (route?.reason !== undefined) return this.#demote(handle, request, target, port, family, route.reason)
    void this.#explore(handle, attempt)
    return 0
  }

  /** `address` if the fast way leads there, or may; else the reason. An open channel needs no rendezvous. */
  #elsewhere(address: string, port: number): string | FallbackReason {
    return this.#routes.find(address, port)?.channel === undefined ? remoteAddress(address, port) : address
  }

  handleRefused(handle: FastHandle, refusal: number | undefined): void {
    const attempt = handle.attempt as Attempt | undefined
    if (attempt === undefined || handle.isClosed) return
    if (attempt.isOwn) {
      // The listener existed at the call and closed before it accepted: in this case the kernel resets the connections
      // of the backlog.
      return handle.finishConnect(UV_ECONNRESET)
    }
    if (handle.stream?.isPresumed === true) {
      // 'connect' was already emitted. TCP would also report a reset: the listener closed its backlog, or its process
      // ended.
      if (attempt.route !== undefined) attempt.route.listenersClosed = undefined
      return handle.handleError('ECONNRESET', 'read', undefined)
    }
    const { channel } = handle.stream ?? {}
    handle.dropStream()
    if (attempt.asked !== undefined) return this.#askAnother(handle, attempt, attempt.asked, refusal)
    this.#routes.forget(attempt.address, attempt.port)
    if (attempt.isFresh) {
      attempt.misled ??= new Set()
      const { misled } = attempt
      const isMisled = refusal === REFUSAL.NOT_LISTENING && channel !== undefined && misled.size < MISLED_MAX
      if (!isMisled) return this.#demoteLater(handle, attempt, fallbackReason(reasonOfRefusal(refusal)))
      misled.add(channel as SocketChannel)
    }
    // A stale route: another process may listen on the port now. A false greeting: another candidate may be true.
    void this.#explore(handle, attempt)
  }

  demoteToBind(handle: FastHandle): TcpHandle {
    return this.#replace(handle, fallbackReason('LOCAL_ADDRESS'))
  }

  /** Never rejects: if the handshake throws, the connect uses TCP. */
  async #reach(handle: FastHandle, attempt: Attempt): Promise<Reached | FallbackReason> {
    const { address, port, family, misled } = attempt
    const ask = (): Promise<Reached | FallbackReason> => this.#peers.reach(address, port, family, misled)
    const isWanted = (): boolean => !handle.isClosed
    try {
      return await askPatiently(nameOf(handle, address, family), port, family, ask, isWanted)
    } catch (error) {
      return fallbackReason('HANDSHAKE', messageOf(error))
    }
  }

  async #explore(handle: FastHandle, attempt: Attempt): Promise<void> {
    const { address, port, family } = attempt
    attempt.isFresh = true
    const found = await this.#reach(handle, attempt)
    if (handle.isClosed || handle.socket?.destroyed) return
    const late = attempt.hasNoOwn ? findListener(port, address, family) : undefined
    if (late !== undefined && answersAlone(late)) return this.#refuseLater(handle, attempt)
    if ('code' in found) {
      const { group } = this.#routes.find(address, port) ?? {}
      group?.makeDo()
      if (group !== undefined && this.#openShared(handle, group, attempt)) return
      return this.#demoteLater(handle, attempt, found)
    }
    const { channel, isShared } = found
    if (isShared) {
      const group = this.#routes.groupOf(address, port)
      const isOurs = group.meet(found)
      if (!isOurs && this.#openShared(handle, group, attempt)) return
      if (!isOurs) return this.#explore(handle, attempt)
      if (this.#openAt(handle, group, found, attempt)) return
    } else {
      const route = this.#routes.rememberChannel(address, port, found)
      if (this.#openPatiently(handle, route, attempt)) return
    }
    this.#demoteLater(handle, attempt, reasonOfNoRoom(channel))
  }

  /**
   * Ends the wait for a worker's answer. Node may have dropped the request, so that `oncomplete` never runs.
   */
  handleClosed(handle: FastHandle): void {
    ;(handle.attempt as Attempt | undefined)?.asked?.noteAnswer()
  }

  /** Asks the group's next worker; false if the hashed port must be called instead. */
  #openShared(handle: FastHandle, group: WorkerGroup, attempt: Attempt): boolean {
    if (!group.isComplete) return false
    const worker = group.next(channel => attempt.refusedBy?.has(channel) === true)
    return worker !== undefined && this.#openAt(handle, group, worker, attempt)
  }

  #openAt(
    handle: FastHandle,
    group: WorkerGroup,
    { channel, address }: Pick<Reached, 'channel' | 'address'>,
    attempt: Attempt,
  ): boolean {
    if (!this.#open(handle, channel, address, attempt)) return false
    attempt.route = undefined
    const noteAnswer = group.noteAsked(channel)
    attempt.asked = { group, channel, noteAnswer }
    const { request } = attempt
    const { oncomplete } = request
    request.oncomplete = (...args) => {
      noteAnswer()
      callIfFunction(oncomplete, request, args)
    }
    return true
  }

  /** A worker of a shared listener has refused, or has gone. */
  #askAnother(
    handle: FastHandle,
    attempt: Attempt,
    { group, channel, noteAnswer }: SharedRoute,
    refusal: number | undefined,
  ): void {
    noteAnswer()
    attempt.asked = undefined
    attempt.refusedBy ??= new Set()
    attempt.refusedBy.add(channel)
    if (refusal !== REFUSAL.LIMIT) group.leave(channel)
    if (this.#openShared(handle, group, attempt)) return
    attempt.exploredCount++
    if (group.isComplete || attempt.exploredCount > EXPLORED_MAX)
      return this.#demoteLater(handle, attempt, fallbackReason(reasonOfRefusal(refusal)))
    void this.#explore(handle, attempt)
  }

  /**
   * As `#open`, for a listener that is not shared. Emits 'connect' before the answer, as the kernel does for a
   * connection in the backlog (decision 0111): as soon as possible if the peer has closed no listener since it last
   * accepted us, else after BUSY_MS or UNPROVEN_BUSY_MS.
   */
  #openPatiently(handle: FastHandle, route: ChannelRoute, attempt: Attempt): boolean {
    const { channel, address } = route
    // Read before the CONNECT is sent: a listener that closes while it accepts then counts as closed afterwards.
    const { listenersClosed } = channel
    if (!this.#open(handle, channel, address, attempt)) return false
    attempt.route = route
    attempt.listenersClosed = listenersClosed
    const stream = handle.stream as SocketStream
    const unanswered = route.isProven ? this.#unanswered : this.#unproven
    unanswered.add(handle, stream)
    const isKnown = listenersClosed !== undefined && listenersClosed === route.listenersClosed
    if (isKnown) channel.presumeSoon(stream, listenersClosed, attempt.notifiedAt)
    return true
  }

  handleAccepted(handle: FastHandle): void {
    const { route, listenersClosed, address, port } = (handle.attempt as Attempt | undefined) ?? {}
    logConnect?.('%s port %d: %s', address, port, handle.stream?.channel.transport)
    if (route === undefined) return
    route.isProven = true
    route.listenersClosed = listenersClosed
  }

  /** Sends a CONNECT over `channel` for the listener that the peer knows as `said`; the handle receives the answer. */
  #open(handle: FastHandle, channel: SocketChannel, said: string, attempt: Attempt): boolean {
    const { address, port, family } = attempt
    const stream = channel.connect(handle, port, said, family)
    if (stream === undefined) return false
    attempt.notifiedAt = noteAsked()
    publishStep('client asked')
    if (family === UNIX) stream.unixPath = nameInRules(handle.host as string)
    else {
      stream.addresses = {
        address,
        source: channel.way?.own ?? sourceAddressFor(address),
        family: family === 6 ? 'IPv6' : 'IPv4',
        serverPort: port,
        clientPort: 0,
      }
    }
    handle.adopt(stream)
    if (handle.socket !== undefined) recordFast(handle.socket, channel.transport)
    return true
  }

  /**
   * A listener of this thread has appeared since the program called `connect`. At that time no listener had the place,
   * as no other process can have it: the kernel would have refused the connection at once.
   */
  #refuseLater(handle: FastHandle, { request, address, port }: Attempt): void {
    handle.run(() => {
      recordFallback(handle.socket as FastSocket, fallbackReason('NOT_LISTENING'), { address, port })
      handle.abandonConnect()
      complete(request, UV_ECONNREFUSED, handle.handle, request, false, false)
    })
  }

  #demoteLater(handle: FastHandle, attempt: Attempt, reason: FallbackReason): void {
    const { request, address, port, family } = attempt
    handle.run(() => {
      const status = this.#demote(handle, request, address, port, family, reason)
      if (status !== 0) complete(request, status, handle.successor ?? handle.handle, request, false, false)
    })
  }

  #demote(
    handle: FastHandle,
    request: ConnectRequest,
    address: string,
    port: number,
    family: Family,
    reason: FallbackReason,
  ): number {
    const { use, because } = decideOn(handle, address, port, family)
    if (use === 'require') {
      const required = { address: nameOf(handle, address, family), port, because }
      return refuseTcp(handle, family === UNIX ? reason : preciseReason(reason, address, port), required)
    }
    this.#rememberOnceConnected(handle, request, address, port, family, reason)
    const isUnix = family === UNIX
    const remote = { address: isUnix ? (handle.host as string) : address, port }
    const tcp = this.#replace(handle, reason, remote, isUnix)
    if (isUnix) return (tcp as PipeHandle).connect(request, remote.address)
    return family === 6 ? tcp.connect6(request, address, port) : tcp.connect(request, address, port)
  }

  /**
   * The socket goes on with its next address, as for `localhost`. If that one accepts, later connects skip the refused
   * one.
   */
  #noteNextAddress(handle: FastHandle, request: ConnectRequest, refused: Refused): void {
    this.#refused = undefined
    if (refused.socket.deref() !== handle.socket) return
    const { oncomplete } = request
    request.oncomplete = (status, ...rest) => {
      if (status === 0) {
        this.#routes.rememberRefused(refused.address, refused.port)
        forgetRefused(refused.address, refused.port)
      }
      callIfFunction(oncomplete, request, [status, ...rest])
    }
  }

  /** Gives the socket a TCP or pipe handle in place of the fast handle, which is abandoned. */
  #replace(handle: FastHandle, reason: FallbackReason, remote?: Place, isUnix = false): TcpHandle {
    const socket = handle.socket as FastSocket
    const tcp = isUnix ? this.#internals.createPipe() : this.#internals.createTcp()
    recordFallback(socket, reason, remote, isUnix ? 'pipe' : 'tcp')
    handle.abandonConnect()
    keepStreamState(socket, () => this.#exchange(socket, tcp))
    if (handle.isUnreferenced) tcp.unref()
    handle.successor = tcp
    return tcp
  }

  /**
   * A server that accepts, but not by the fast way, is remembered under its address and under the name that the program
   * used: later connects do not ask again for a while.
   */
  #rememberOnceConnected(
    handle: FastHandle,
    request: ConnectRequest,
    address: string,
    port: number,
    family: Family,
    reason: FallbackReason,
  ): void {
    if (!lasts(reason)) return
    const { oncomplete } = request
    const socket = handle.socket as FastSocket
    const name = nameOf(handle, address, family)
    request.oncomplete = (status, ...rest) => {
      if (status === UV_ECONNREFUSED && reason.code === 'NOT_RELINKED') {
        this.#refused = { socket: new keptGlobals.WeakRef(socket), address, port }
        noteRefused(name, port)
        recordRefused(socket)
      }
      if (status === 0) {
        forgetRefused(name, port)
        const isKnownBetter = !this.#routes.rememberReason(address, port, reason)
        if (handle.host !== undefined && !isKnownBetter)
          this.#routes.rememberReason(handle.host, port, reason)
      }
      callIfFunction(oncomplete, request, [status, ...rest])
    }
  }
}

/** What the program knows the place by: of a unix socket `address` may be the key. */
function nameOf(handle: FastHandle, address: string, family: Family): string {
  return family === UNIX ? (handle.host as string) : address
}

function decideOn(handle: FastHandle, address: string, port: number, family: Family): Decision {
  const name = nameOf(handle, address, family)
  return family === UNIX ? decidePath('client', name) : decide('client', name, port)
}

/**
 * The policy requires the fast way: reports ECONNREFUSED for this address. Node then tries the next one, if there is
 * one.
 */
function refuseTcp(handle: FastHandle, reason: FallbackReason, required: Required): number {
  const { address, port } = required
  recordFallback(handle.socket as FastSocket, reason, { address, port })
  handle.abandonConnect()
  explainFailure(handle.socket as FastSocket, reason, required)
  return UV_ECONNREFUSED
}

/**
 * Our own event loop may be late, and the answer may have arrived: allows two iterations, then polls, before it emits
 * 'connect'.
 */
function presumeIfUnanswered(handle: FastHandle, stream: SocketStream): void {
  if (!isUnanswered(handle, stream)) return
  setImmediate(() => setImmediate(presume, handle, stream))
}

function presume(handle: FastHandle, stream: SocketStream): void {
  if (!isUnanswered(handle, stream)) return
  pollOnce(stream.channel)
  if (!isUnanswered(handle, stream)) return
  stream.channel.presumeConnected(stream)
  handle.finishConnect(0)
}

/** The channels already polled in this iteration: one poll serves all their connects. */
const polled = new Set<SocketChannel>()

/** Polls for answers that are behind more messages than a turn handles. */
function pollOnce(channel: SocketChannel): void {
  if (polled.has(channel)) return
  if (polled.size === 0) setImmediate(() => polled.clear())
  polled.add(channel)
  channel.pollNow(ANSWERS_MAX)
}
