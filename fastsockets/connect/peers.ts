/**
 * The peers of this thread: their identity, the channel to each, and both ends of the handshake that makes a channel
 * (bootstrap-layout.ts). On one host the driver reports a peer's end; between hosts the bootstrap connection stays open
 * as the channel's lifeline.
 */
import { AsyncResource } from 'node:async_hooks'
import type net from 'node:net'
import { reliable } from '../../am/channels.ts'
import {
  ablation,
  CallersByUser,
  DESCRIPTORS_LEFT,
  type Driver,
  hasFreeDescriptors,
  isOwnUser,
  isSameKernel,
  keepFreedMemory,
  limitSilenceOf,
  mappedAddress,
  type NetworkPath,
  type Offer,
  openLog,
  openLoopbackPair,
  textOfAddress,
  type VirtualInterface,
} from '../../nic/index.ts'
import {
  type ConnectFunction,
  callDoor,
  type Greeted,
  greetingTimeoutMs,
  type Race,
  type Shaken,
  type Sought,
  shakeHands,
} from '../bootstrap/bootstrap-client.ts'
import {
  ANSWER_HEADER_SIZE,
  answerLength,
  encodeReply,
  type Introduction,
  NO_ID,
  REFUSAL,
  REPLY_MAGIC,
  VERSION,
} from '../bootstrap/bootstrap-layout.ts'
import type { BootstrapHost, BootstrapNetwork } from '../bootstrap/bootstrap-server.ts'
import { Door } from '../bootstrap/door.ts'
import { pathOf, type Reply } from '../bootstrap/hello-callers.ts'
import type { Kernel } from '../bootstrap/kernel.ts'
import { mayBeNeighbours } from '../bootstrap/neighbours.ts'
import { REMOTE_TIMEOUT_MS, rememberSilent } from '../bootstrap/remote-hosts.ts'
import { TimeLimit } from '../bootstrap/time-limit.ts'
import { endsOf, transcriptOf } from '../bootstrap/transcript.ts'
import { withoutMapping } from '../host/addresses.ts'
import { node20 } from '../host/node-versions.ts'
import { publishStep } from '../host/steps.ts'
import { PortShare } from '../host/synthetic-ports.ts'
import { type Family, UNIX } from '../host/unix-paths.ts'
import { allowsDriver, allowsPeerMemory } from '../policy/own-policy.ts'
import { type FallbackCode, type FallbackReason, fallbackReason } from '../reasons.ts'
import {
  type Acceptor,
  type PeerShares,
  SocketChannel,
  type SocketStream,
  type Way,
} from '../stream/socket-channel.ts'
import { isOverBudget, UnreadShare } from '../stream/unread-budget.ts'
import { findChannel, isElsewhere } from './find-channel.ts'
import { tieLifeline, watchPeer } from './lifeline.ts'
import { DRIVER, type PeersHost, processHost } from './peers-host.ts'
import type { Reached } from './worker-group.ts'

const log = openLog('fastsockets:peers')

/** Channels of this thread; each costs two rings of shared memory and a doorbell. */
const CHANNELS_MAX = 1024
/** Offers under way to processes of this process's own user; as many to all other callers together. */
const OFFERS_MAX = 64
/** The same limit for one other user, or one other host. */
const OTHER_OFFERS_MAX = 16
/** Largest ring that a socket's peer may offer: it bounds what one peer can have under way (docs/protocol.md#limits). */
const RING_SIZE_MAX_SOCKETS = 1 << 20
/** The most that a peer may take for the driver's part of the handshake. */
const DRIVER_TIMEOUT_MS = 1000
/** Where the driver does not notice that the peer's host has vanished, the lifeline's kernel does, after so long. */
const HOST_SILENCE_MS = 30_000
/** Channels are made in this context, so that they do not retain values of a program's AsyncLocalStorage. */
const scope = new AsyncResource('FASTSOCKETS')

/** Another candidate has won. */
const LOST = fallbackReason('HANDSHAKE', 'another candidate was faster')

const POSES = fallbackReason('OTHER_USER', 'the listener on the port is not of the user that greets for it')

/** What a handshake under way shares with those of the other candidates. */
interface Following {
  readonly race: Race
  readonly limit: TimeLimit
  readonly refusedBy: ReadonlySet<SocketChannel> | undefined
}

interface Peer {
  /** Its endpoint id, as hexadecimal digits. */
  readonly id: string
  /** Connects of this thread find the channel by it; undefined if they may not use it. */
  readonly key: string | undefined
  /** Undefined if the kernel does not know it. */
  readonly uid: number | undefined
  /** Through the rendezvous folder. */
  readonly way: Way | undefined
}

/** A handshake of which the answer has come. */
interface Shaking {
  readonly key: string
  /** The peer is in this network namespace. */
  readonly isLocal: boolean
  /** The greeting came through the rendezvous folder. */
  readonly isNeighbour: boolean
  readonly way: Way | undefined
  readonly race: Race
}

const REASON_OF_REFUSAL: Readonly<Record<number, FallbackCode>> = {
  [REFUSAL.OTHER_USER]: 'OTHER_USER',
  [REFUSAL.OTHER_HOST]: 'OTHER_HOST',
  [REFUSAL.VERSION]: 'VERSION',
  [REFUSAL.NOT_LISTENING]: 'NOT_LISTENING',
  [REFUSAL.LIMIT]: 'LIMIT',
  [REFUSAL.DRIVER]: 'DRIVER',
}

/** Why a channel cannot carry one more socket of ours. */
export function reasonOfNoRoom({ isOpen }: SocketChannel): FallbackReason {
  return fallbackReason(isOpen ? 'LIMIT' : 'HANDSHAKE')
}

export function reasonOfRefusal(refusal: number | undefined): FallbackCode {
  return (refusal === undefined ? undefined : REASON_OF_REFUSAL[refusal]) ?? 'HANDSHAKE'
}

export class Peers implements BootstrapHost {
  readonly #accept: Acceptor
  readonly #connect: ConnectFunction
  readonly #isRaw: boolean
  readonly #host: PeersHost
  readonly #endpointId: Buffer
  /** Channels that connects of this thread may use, by `keyOf`. */
  readonly #channels = new Map<string, SocketChannel>()
  /** Handshakes under way, by address and port: further connects to the same place wait for the same handshake. */
  readonly #calls = new Map<string, Promise<Reached | FallbackReason>>()
  /** Open channels to other threads and processes. A completion queue polls those of the raw sockets. */
  readonly openChannels: SocketChannel[] = []
  /** Both ends of the channel of this thread to itself. */
  ownChannels: readonly SocketChannel[] = []
  #door: Door | undefined
  /** Shares of client ports and of unread data, by user, for other users that the policy allows. */
  readonly #shares = new Map<number, PeerShares>()
  readonly #offers = new CallersByUser({ own: OFFERS_MAX, other: OTHER_OFFERS_MAX, others: OFFERS_MAX })

  /** `isRaw`: the channels carry raw sockets only. */
  constructor(accept: Acceptor, connect: ConnectFunction, isRaw = false, host = processHost) {
    this.#isRaw = isRaw
    this.#host = host
    this.#endpointId = host.kernel.newId()
    this.#accept = accept
    this.#connect = connect
  }

  get kernel(): Kernel {
    return this.#host.kernel
  }

  get network(): BootstrapNetwork | undefined {
    return this.#host.network
  }

  /** The channel of this thread to itself. */
  ownChannel(): SocketChannel {
    const [known] = this.ownChannels
    if (known?.isOpen) return known
    const id = this.#endpointId.toString('hex')
    const [near, far] = openLoopbackPair()
    const farChannel = new SocketChannel(far, id, this.#accept, () => {})
    farChannel.channel.isFirst = true
    farChannel.channel.isOwn = true
    const channel = new SocketChannel(near, id, this.#accept, () => {})
    channel.channel.isOwn = true
    this.ownChannels = [channel, farChannel]
    return channel
  }

  /** The streams of all channels. */
  streams(): SocketStream[] {
    return [...this.ownChannels, ...this.openChannels].flatMap(
      channel => channel.streams.all() as SocketStream[],
    )
  }

  /**
   * The channel to the listener on `port` at `address`, or the reason why there is none. `refusedBy`: channels that do
   * not know the listener, though a greeting has said so. `protocol`: `udp` for the receiving UDP socket of a neighbour.
   */
  reach(
    address: string,
    port: number,
    family: Family,
    refusedBy?: ReadonlySet<SocketChannel>,
    protocol?: 'udp',
  ): Promise<Reached | FallbackReason> {
    const sought = { address, port, family, ...(protocol && { protocol }) }
    if (refusedBy !== undefined) return scope.runInAsyncScope(() => this.#call(sought, refusedBy))
    const key = `${address} ${port} ${protocol}`
    const underWay = this.#calls.get(key)
    if (underWay !== undefined) return underWay
    const call = scope
      .runInAsyncScope(() => this.#call(sought))
      .catch(error => fallbackReason('HANDSHAKE', (error as Error).message))
      .finally(() => this.#calls.delete(key))
    this.#calls.set(key, call)
    return call
  }

  introduce(port: number): Introduction {
    return {
      version: VERSION,
      port,
      isShared: false,
      isRequired: false,
      endpointId: this.#endpointId,
      ...this.#host.identity(),
      door: NO_ID,
      listenerId: NO_ID,
    }
  }

  /** To a neighbour: our address towards it, and no pid, which would mean nothing there. */
  #introduceTo(way: Way | undefined, port: number): Introduction {
    return { ...this.introduce(port), pid: 0, door: way?.own ? mappedAddress(way.own) : NO_ID }
  }

  openDoor(): Door | undefined {
    if (this.#door?.isClosed !== false) this.#door = allowsDriver(DRIVER) ? Door.open(this) : undefined
    return this.#door
  }

  /**
   * Answers a HELLO. At the door the kernel knows the client's user (`uid`); on the TCP bootstrap of another host it
   * does not. The client's own claims only serve to refuse early.
   */
  answer(
    hello: Introduction,
    uid: number | undefined,
    isThroughFolder = false,
    path: NetworkPath | undefined = undefined,
  ): Reply {
    if (hello.version !== VERSION) return { refusal: REFUSAL.VERSION }
    const isLocal = uid !== undefined
    const { allowsUser } = this.kernel
    if (!isThroughFolder && this.#isHere(hello) !== isLocal) return { refusal: REFUSAL.OTHER_HOST }
    const usable = isThroughFolder ? this.#host.localDrivers() : this.#driversTo(hello)
    const way = isThroughFolder ? wayOfNeighbour(hello, this.kernel) : undefined
    if (way === null) return { refusal: REFUSAL.OTHER_HOST }
    if (usable.length === 0 && !isLocal) return { refusal: REFUSAL.OTHER_HOST }
    if (!allowsUser(uid ?? hello.uid)) return { refusal: REFUSAL.OTHER_USER }
    if (this.openChannels.length >= CHANNELS_MAX || isOverBudget() || !hasFreeDescriptors())
      return { refusal: REFUSAL.LIMIT }
    let callerUid: number | undefined
    const allowUid = (uid: number): boolean => {
      callerUid = uid
      return allowsUser(uid)
    }
    const made = offerBest(usable, allowUid, isThroughFolder, path)
    if (made === undefined) return { refusal: REFUSAL.DRIVER }
    const { driver, offer } = made
    const caller = uid ?? hello.hostIdentity.toString('hex')
    if (!this.#offers.enter(caller)) {
      offer.cancel()
      return { refusal: REFUSAL.LIMIT }
    }
    const finish = (connection: net.Socket, transcript: Buffer): void => {
      const cancel = (): void => offer.cancel()
      connection.once('close', cancel)
      if (offer.answer !== undefined) receiveReply(connection, offer)
      offer.accepted
        .then(end => {
          connection.off('close', cancel)
          const peerId = hello.endpointId.toString('hex')
          // Our own connects do not lead to a neighbour by the address that it claims.
          const isMeet = callerUid !== undefined && !isThroughFolder
          const key = isMeet ? keyOf(peerId, userOf(callerUid as number)) : undefined
          const peer = { id: peerId, key, uid: callerUid, way }
          const channel = this.#open(end, peer, connection, transcript, isTrue => {
            if (isTrue && key !== undefined) this.#channels.set(key, channel)
          })
        })
        .catch(error => {
          log('offer to pid %d: %s', hello.pid, (error as Error).message)
          connection.destroy()
        })
        .finally(() => {
          this.#offers.leave(caller)
        })
    }
    return { driver: driver.name, blob: offer.blob, finish }
  }

  async #call(sought: Sought, refusedBy?: ReadonlySet<SocketChannel>): Promise<Reached | FallbackReason> {
    const { address, family } = sought
    const { kernel } = this
    const limit = limitFor(address, family, kernel)
    if (!allowsDriver(DRIVER) && !isElsewhere(address, family, kernel))
      return fallbackReason('POLICY', `it does not allow ${DRIVER}`)
    const follow = (greeted: Greeted, race: Race): Promise<Reached | FallbackReason> =>
      this.#follow(sought, greeted, { race, limit, refusedBy })
    return await findChannel<Reached>(sought, this.#connect, limit, follow, kernel)
  }

  /** Proves a greeting: by the channel that it leads to, or by one that this thread has already. */
  async #follow(
    sought: Sought,
    { connection, greeting, bytes: greetingBytes, neighbourUid }: Greeted,
    { race, limit: limitElsewhere, refusedBy }: Following,
  ): Promise<Reached | FallbackReason> {
    publishStep('client greeted')
    const { kernel } = this
    const { address, port, family } = sought
    const { isShared, isRequired, listenerId } = greeting
    const said = family === UNIX ? listenerId.toString('hex') : address
    const isNeighbour = neighbourUid !== undefined
    const limit = isNeighbour ? new TimeLimit(Number.POSITIVE_INFINITY, kernel.clock) : limitElsewhere
    const refusal = isNeighbour ? undefined : this.#judge(greeting)
    if (refusal !== undefined) {
      connection.destroy()
      return fallbackReason(refusal)
    }
    const peerId = greeting.endpointId.toString('hex')
    // In a cluster the primary may have chosen this very worker.
    const isOwn = isShared && greeting.endpointId.equals(this.#endpointId) && allowsDriver('loopback')
    const isLocal = this.#isHere(greeting) && !isElsewhere(address, family, kernel) && !isNeighbour
    const place = isNeighbour ? `${userOf(neighbourUid)} ${address}` : address
    const key = keyOf(peerId, isLocal ? userOf(greeting.uid) : place)
    const known = isOwn ? this.ownChannel() : this.#channels.get(key)
    if (known?.isUsable) {
      connection.destroy()
      if (refusedBy?.has(known)) return fallbackReason('NOT_LISTENING')
      if (!isNeighbour && known.peerUid !== undefined && !mayServe(known.peerUid, sought, kernel))
        return POSES
      return race.win() ? { channel: known, isShared, isRequired, address: said, isProven: false } : LOST
    }
    if (this.openChannels.length >= CHANNELS_MAX) {
      connection.destroy()
      return fallbackReason('LIMIT', `this thread has ${CHANNELS_MAX} channels already`)
    }
    if (!hasFreeDescriptors()) {
      connection.destroy()
      return fallbackReason('LIMIT', `fewer than ${DESCRIPTORS_LEFT} file descriptors are free`)
    }
    if (isOverBudget()) {
      connection.destroy()
      return fallbackReason(
        'LIMIT',
        'the sockets of this process keep more unread bytes than its budget allows',
      )
    }
    let shaking = connection
    const way = isNeighbour ? wayToNeighbour(address, family, kernel) : undefined
    if (way === null) {
      connection.destroy()
      return fallbackReason('NO_RENDEZVOUS', `no route leads to ${address}`)
    }
    if (this.#isHere(greeting) && !isNeighbour) {
      connection.destroy()
      const door = await callDoor(greeting.door, this.#connect, race, kernel)
      if ('code' in door) return door
      shaking = door
      const uid = kernel.userOf(door)
      if (uid === undefined || !mayServe(uid, sought, kernel)) {
        door.destroy()
        return POSES
      }
    }
    if (race.isOver) {
      shaking.destroy()
      return LOST
    }
    const hello = isNeighbour ? this.#introduceTo(way, port) : this.introduce(port)
    const shaken = await shakeHands(shaking, { ...hello, listenerId }, limit.leftMs, kernel.clock)
    if (shaken === undefined) return reasonOfFailure(address, limit)
    publishStep('client answered')
    try {
      const channel = await this.#handleAnswer(
        shaken,
        greeting,
        greetingBytes,
        shaking,
        { key, isLocal, isNeighbour, way, race },
        limit,
      )
      if (!(channel instanceof SocketChannel)) return channel
      return { channel, isShared, isRequired, address: said, isProven: true }
    } catch (error) {
      shaking.destroy()
      const { code, message } = error as Error & { code?: string }
      return code === 'ERR_NIC_PEER_REFUSED'
        ? fallbackReason('OTHER_USER', message)
        : reasonOfFailure(address, limit, message)
    }
  }

  #judge(greeting: Introduction): FallbackCode | undefined {
    if (this.#driversTo(greeting).length === 0) {
      if (this.#isHere(greeting)) return 'POLICY'
      return isSameKernel(greeting.hostIdentity) ? 'NO_RENDEZVOUS' : 'OTHER_HOST'
    }
    return this.kernel.allowsUser(greeting.uid) ? undefined : 'OTHER_USER'
  }

  async #handleAnswer(
    { answer, helloBytes, answerBytes }: Shaken,
    introduced: Introduction,
    greeting: Buffer,
    connection: net.Socket,
    { key, isLocal, isNeighbour, way, race }: Shaking,
    limit: TimeLimit,
  ): Promise<SocketChannel | FallbackReason> {
    if (answer.result !== 0) {
      connection.destroy()
      if (isNeighbour && answer.result === REFUSAL.OTHER_HOST)
        return fallbackReason('NO_RENDEZVOUS', `the server's container has the address ${way?.own}, too`)
      return fallbackReason(reasonOfRefusal(answer.result))
    }
    const usable = isNeighbour ? this.#host.localDrivers() : this.#driversTo(introduced)
    const driver = usable.find(({ name }) => name === answer.driver)
    if (driver === undefined) {
      connection.destroy()
      return fallbackReason('DRIVER', `the server offers ${JSON.stringify(answer.driver)}`)
    }
    let uid: number | undefined
    const { allowsUser, clock } = this.kernel
    const driverLimit = new TimeLimit(Math.min(driverTimeoutMs(), limit.leftMs), clock)
    const path = pathOf(connection)
    const end = await driver.connect(answer.blob, {
      queueSizeMax: Math.max(RING_SIZE_MAX_SOCKETS, ablation('ring') ?? 0),
      timeoutMs: driverLimit.leftMs,
      allowUid: one => {
        uid = one
        return allowsUser(one)
      },
      reply: bytes => connection.write(encodeReply(bytes)),
      readsPeer: allowsPeerMemory(),
      isThroughFolder: isNeighbour,
      ...(path && { path }),
    })
    const peerId = introduced.endpointId.toString('hex')
    const proved = isLocal && uid !== undefined ? keyOf(peerId, userOf(uid)) : key
    const said = { greeting, hello: helloBytes, answer: answerBytes }
    const transcript = transcriptOf(said, endsOf(connection, 'client'))
    if (race.isOver) {
      end.close()
      connection.destroy()
      return LOST
    }
    const peer = { id: peerId, key: proved, uid, way }
    const channel = await new Promise<SocketChannel | undefined>(resolve => {
      const opened = this.#open(end, peer, connection, transcript, isTrue => {
        clock.clearTimeout(timer)
        resolve(isTrue ? opened : undefined)
      })
      // Keeps the event loop alive, too: the doorbell does so only once there is a socket.
      const timer = clock.setTimeout(() => opened.close(), driverLimit.leftMs)
    })
    if (channel === undefined)
      return fallbackReason('HANDSHAKE', 'the two sides received different bootstrap bytes')
    if (!race.win(connection)) {
      channel.close()
      return LOST
    }
    this.#channels.set(proved, channel)
    return channel
  }

  /** All processes of one other user count as one peer. Undefined for a process of the own user, and for another host. */
  #sharesOf(uid: number | undefined): PeerShares | undefined {
    if (this.#host.shares !== undefined) return this.#host.shares
    if (uid === undefined || isOwnUser(uid)) return undefined
    const shares = this.#shares.get(uid) ?? { ports: new PortShare(), unread: new UnreadShare() }
    this.#shares.set(uid, shares)
    return shares
  }

  /**
   * Calls `onProven` with true once the peer has sent the same transcript, or with false if the channel ends before. No
   * connect of this thread may use the channel until then.
   */
  #open(
    made: VirtualInterface,
    { id, key, uid, way }: Peer,
    connection: net.Socket,
    transcript: Buffer,
    onProven: (isTrue: boolean) => void,
  ): SocketChannel {
    publishStep('channel open')
    keepFreedMemory()
    node20?.warmUpOptionCopies()
    // Early compilation ends in an iteration of the event loop, which a program that polls raw sockets may never reach.
    const handleGone = (gone: SocketChannel): void => {
      if (!isProven) onProven(false)
      if (key !== undefined && this.#channels.get(key) === gone) this.#channels.delete(key)
      const at = this.openChannels.indexOf(gone)
      if (at >= 0) this.openChannels.splice(at, 1)
    }
    let isProven = false
    // A frozen peer is not lost: its kernel goes on answering for the lifeline.
    const { kernel, channelHost, retentionBytes } = this.#host
    const end = reliable(made, {
      peerTimeoutMs: Number.POSITIVE_INFINITY,
      clock: kernel.clock,
      ...(retentionBytes && { retentionBytes }),
    })
    if (end !== made) limitSilenceOf(connection, HOST_SILENCE_MS)
    const shares = this.#sharesOf(uid)
    const channel = new SocketChannel(
      end,
      id,
      this.#accept,
      handleGone,
      this.#isRaw,
      transcript,
      shares,
      channelHost,
    )
    channel.onBound = () => {
      isProven = true
      onProven(true)
    }
    channel.peerUid = uid
    this.openChannels.push(channel)
    const path = pathOf(connection)
    channel.way = path
      ? { own: withoutMapping(path.own), peer: withoutMapping(path.peer), isThroughFolder: false }
      : way
    if (end.hasPeer === undefined) tieLifeline(connection, channel)
    else {
      connection.destroy()
      watchPeer(channel)
    }
    return channel
  }

  #isHere(peer: Introduction): boolean {
    return peer.hostIdentity.equals(this.#host.identity().hostIdentity)
  }

  /** Empty if the policy or the machine allows no driver to this peer. */
  #driversTo(peer: Introduction): readonly Driver[] {
    return this.#isHere(peer) ? this.#host.localDrivers() : this.#host.remoteDrivers()
  }
}

/**
 * A peer's claimed id is trusted only at the place where the peer was met: an address of another host, or a user of
 * this host.
 */
function keyOf(peerId: string, place: string): string {
  return `${peerId} ${place}`
}

/**
 * Whether a user that the policy allows may serve this listener's clients: ours may, another one only if the kernel's
 * listener is that user's. On unix paths the caller of the name has asked the kernel already.
 */
function mayServe(uid: number, { address, port, family }: Sought, kernel: Kernel): boolean {
  return family === UNIX || kernel.mayServe(uid, address, port)
}

/** The user by the kernel's word for a peer that has a channel; by the greeting for one that has none yet. */
function userOf(uid: number): string {
  return `user ${uid}`
}

/** On this host every step has a limit of its own. Another host has one limit for all steps together. */
function limitFor(address: string, family: Family, kernel: Kernel): TimeLimit {
  return new TimeLimit(
    isElsewhere(address, family, kernel) ? greetingTimeoutMs(REMOTE_TIMEOUT_MS) : Number.POSITIVE_INFINITY,
    kernel.clock,
  )
}

/** A host that sends a greeting and nothing after it counts as silent. */
function reasonOfFailure(address: string, limit: TimeLimit, detail?: string): FallbackReason {
  if (!limit.isOver) return fallbackReason('HANDSHAKE', detail)
  rememberSilent(address)
  return fallbackReason('SILENT', 'after the greeting nothing came in time')
}

/** A longer greeting limit lengthens the driver's limit as well. */
function driverTimeoutMs(): number {
  return Math.max(DRIVER_TIMEOUT_MS, greetingTimeoutMs(DRIVER_TIMEOUT_MS))
}

/** Neither side of a unix path has an address. */
const NO_ADDRESSES: Way = { own: '', peer: '', isThroughFolder: true }

/** The way to a neighbour's address; null if there is no route. */
function wayToNeighbour(address: string, family: Family, kernel: Kernel): Way | null {
  if (family === UNIX) return NO_ADDRESSES
  const own = kernel.sourceAddressTo(address)
  return own === undefined ? null : { own, peer: address, isThroughFolder: true }
}

/** The way to a neighbour that has sent `hello`; null if it claims an address that it cannot have. */
function wayOfNeighbour({ door, port }: Introduction, kernel: Kernel): Way | null | undefined {
  if (port === 0) return NO_ADDRESSES
  const peer = textOfAddress(door)
  return mayBeNeighbours(peer, kernel) ? { own: '', peer, isThroughFolder: true } : null
}

/** Reads the client's REPLY and hands it to the driver that made the offer; any other bytes end the connection. */
function receiveReply(connection: net.Socket, offer: Offer): void {
  let received: Buffer = Buffer.alloc(0)
  const handleData = (bytes: Buffer): void => {
    received = Buffer.concat([received, bytes])
    const length = answerLength(received, REPLY_MAGIC)
    if (length === undefined || received.length > length) return void connection.destroy()
    if (received.length < length || length === ANSWER_HEADER_SIZE) return
    connection.off('data', handleData)
    offer.answer?.(received.subarray(ANSWER_HEADER_SIZE))
  }
  connection.on('data', handleData)
}

/** The first driver that can make an offer now: one may lack descriptors, or a device that leads to the peer. */
function offerBest(
  usable: readonly Driver[],
  allowUid: (uid: number) => boolean,
  isThroughFolder: boolean,
  path: NetworkPath | undefined,
): { readonly driver: Driver; readonly offer: Offer } | undefined {
  const queueSize = ablation('ring')
  const options = {
    timeoutMs: driverTimeoutMs(),
    allowUid,
    readsPeer: allowsPeerMemory(),
    isThroughFolder,
    ...(path && { path }),
    ...(queueSize && { queueSize }),
  }
  for (const driver of usable) {
    try {
      return { driver, offer: driver.offer(options) }
    } catch (error) {
      log('no offer by %s: %s', driver.name, (error as Error).message)
    }
  }
  return undefined
}
