/**
 * The peers of this thread: who they are, the channel to each, and both ends of the handshake that makes one
 * (bootstrap-layout.ts). On one host a channel's descriptors pass over the driver's own road; the bootstrap connection
 * carries only the driver's address blob, and stays as the lifeline.
 */
import { AsyncResource } from 'node:async_hooks'
import type net from 'node:net'
import { isDaemonExpected } from '../../nameservice/socket-path.ts'
import {
  ablation,
  type Driver,
  drivers,
  hostIdentity,
  keepFreedMemory,
  type Offer,
  openLog,
  openLoopbackPair,
  randomBytes,
  type VirtualInterface,
} from '../../nic/index.ts'
import {
  callBootstrap,
  callHashedPort,
  type Greeted,
  greetingTimeoutMs,
  shakeHands,
} from '../bootstrap/bootstrap-client.ts'
import {
  ANSWER_HEADER_SIZE,
  type Answer,
  answerLength,
  ENDPOINT_ID_SIZE,
  encodeReply,
  type Introduction,
  REFUSAL,
  REPLY_MAGIC,
  VERSION,
} from '../bootstrap/bootstrap-layout.ts'
import type { BootstrapHost, Reply } from '../bootstrap/bootstrap-server.ts'
import {
  askingOf,
  REMOTE_DRIVER,
  REMOTE_TIMEOUT_MS,
  rememberSilent,
  remoteDriver,
} from '../bootstrap/remote-hosts.ts'
import { TimeLimit } from '../bootstrap/time-limit.ts'
import { reachableOwnAddress, withoutMapping } from '../host/addresses.ts'
import { teachCopiedOptions } from '../host/copied-options.ts'
import { compileEarly } from '../host/early-compiling.ts'
import { tellStep } from '../host/steps.ts'
import { type Family, UNIX } from '../host/unix-paths.ts'
import { allowsDriver, allowsUser } from '../policy/own-policy.ts'
import { type FallbackCode, type FallbackReason, fallbackReason } from '../reasons.ts'
import type { Acceptor } from '../stream/channel-contract.ts'
import { SocketChannel } from '../stream/socket-channel.ts'
import type { Stream } from '../stream/stream.ts'
import { tieLifeline } from './lifeline.ts'
import { findBootstrapPort, inTime, LOOK_UP_MS_MAX, lookUpMs } from './names.ts'

const log = openLog('fastsockets:peers')

/** The driver for processes of one host; between hosts it is another (remote-hosts.ts). */
const DRIVER = 'shm'
/** Channels of this thread; each costs two rings of shared memory, a doorbell and a lifeline. */
const CHANNELS_MAX = 1024
/** Offers that nobody has taken up yet. */
const OFFERS_MAX = 64
/** How long a peer may take for the driver's part of the handshake. */
const DRIVER_TIMEOUT_MS = 1000
/** A channel is nobody's: what a program keeps in an AsyncLocalStorage is not held by it. */
const scope = new AsyncResource('FASTSOCKETS')

type ConnectFunction = (this: net.Socket, options: net.NetConnectOpts) => net.Socket

/** Who answered for a listener. */
export interface Reached {
  readonly channel: SocketChannel
  /** Others may answer the next time: the workers of a cluster, or whoever has the same port. */
  readonly isShared: boolean
}

const REASON_OF_REFUSAL: Readonly<Record<number, FallbackCode>> = {
  [REFUSAL.OTHER_USER]: 'OTHER_USER',
  [REFUSAL.OTHER_HOST]: 'OTHER_HOST',
  [REFUSAL.VERSION]: 'VERSION',
  [REFUSAL.NOT_LISTENING]: 'NOT_LISTENING',
  [REFUSAL.LIMIT]: 'LIMIT',
  [REFUSAL.DRIVER]: 'DRIVER',
}

/** Why a channel takes no further socket of ours. */
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
  readonly #endpointId = randomBytes(ENDPOINT_ID_SIZE)
  /** Those that connects of this thread may use, by `keyOf`. */
  readonly #channels = new Map<string, SocketChannel>()
  /** Handshakes under way, by address and port: connections that begin meanwhile wait for the same one. */
  readonly #calls = new Map<string, Promise<Reached | FallbackReason>>()
  /** Open channels to other threads and processes, for whoever polls them by hand. */
  readonly openChannels: SocketChannel[] = []
  /** Both ends of the channel of this thread to itself. */
  ownChannels: readonly SocketChannel[] = []
  #offerCount = 0

  /** `isRaw`: the channels carry raw sockets only. */
  constructor(accept: Acceptor, connect: ConnectFunction, isRaw = false) {
    this.#isRaw = isRaw
    this.#accept = accept
    this.#connect = connect
  }

  /** The channel of this thread to itself. */
  ownChannel(): SocketChannel {
    const [known] = this.ownChannels
    if (known?.isOpen) return known
    const id = this.#endpointId.toString('hex')
    const [near, far] = openLoopbackPair()
    const farChannel = new SocketChannel(far, id, this.#accept, () => {})
    farChannel.channel.isFirst = true
    const channel = new SocketChannel(near, id, this.#accept, () => {})
    this.ownChannels = [channel, farChannel]
    return channel
  }

  /** The streams of all channels. */
  streams(): Stream[] {
    return [...this.ownChannels, ...this.openChannels].flatMap(channel => channel.streams.all())
  }

  /** The channel to whoever listens on `port` at `address`, an address of this host; or why there is none. */
  reach(address: string, port: number, family: Family): Promise<Reached | FallbackReason> {
    const key = `${address} ${port}`
    const underWay = this.#calls.get(key)
    if (underWay !== undefined) return underWay
    const call = scope
      .runInAsyncScope(() => this.#call(address, port, family))
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
      endpointId: this.#endpointId,
      hostIdentity: hostIdentity(),
      uid: process.geteuid?.() ?? 0,
      pid: process.pid,
    }
  }

  /** A client has said HELLO. What it says of itself only serves to refuse early: the driver asks the kernel. */
  answer(hello: Introduction): Reply {
    if (hello.version !== VERSION) return { refusal: REFUSAL.VERSION }
    const driver = driverTo(hello)
    if (driver === undefined && !isHere(hello)) return { refusal: REFUSAL.OTHER_HOST }
    if (!allowsUser(hello.uid)) return { refusal: REFUSAL.OTHER_USER }
    if (this.openChannels.length >= CHANNELS_MAX || this.#offerCount >= OFFERS_MAX)
      return { refusal: REFUSAL.LIMIT }
    if (driver === undefined || !driver.availability().usable) return { refusal: REFUSAL.DRIVER }
    let callerUid: number | undefined
    const offer = tryOffer(driver, uid => {
      callerUid = uid
      return allowsUser(uid)
    })
    if (offer === undefined) return { refusal: REFUSAL.DRIVER }
    this.#offerCount++
    const finish = (connection: net.Socket): void => {
      const cancel = (): void => offer.cancel()
      connection.once('close', cancel)
      if (offer.answer !== undefined) hearReply(connection, offer)
      offer.accepted
        .then(end => {
          connection.off('close', cancel)
          const peerId = hello.endpointId.toString('hex')
          const key = callerUid === undefined ? undefined : keyOf(peerId, userOf(callerUid))
          this.#open(end, peerId, connection, key)
        })
        .catch(error => {
          log('offer to pid %d: %s', hello.pid, (error as Error).message)
          connection.destroy()
        })
        .finally(() => {
          this.#offerCount--
        })
    }
    return { driver: driver.name, blob: offer.blob, finish }
  }

  async #call(address: string, port: number, family: Family): Promise<Reached | FallbackReason> {
    const limit = limitFor(address, family)
    if (!allowsDriver(DRIVER) && !isElsewhere(address, family))
      return fallbackReason('POLICY', `it does not allow ${DRIVER}`)
    const outcome = await this.#find(address, port, family, limit)
    if ('code' in outcome) {
      const { code, detail, mayPass } = outcome
      return { ...fallbackReason(code, detail), ...(mayPass === undefined ? {} : { mayPass }) }
    }
    const { connection, greeting } = outcome
    tellStep('client greeted')
    const { isShared } = greeting
    const refusal = this.#judge(greeting)
    if (refusal !== undefined) {
      connection.destroy()
      return fallbackReason(refusal)
    }
    const peerId = greeting.endpointId.toString('hex')
    // Of a cluster's workers it may be this one whose turn it is.
    const isOwn = isShared && greeting.endpointId.equals(this.#endpointId) && allowsDriver('loopback')
    const isLocal = isHere(greeting) && !isElsewhere(address, family)
    const key = keyOf(peerId, isLocal ? userOf(greeting.uid) : address)
    const known = isOwn ? this.ownChannel() : this.#channels.get(key)
    if (known?.isOpen) {
      connection.destroy()
      return { channel: known, isShared }
    }
    if (this.openChannels.length >= CHANNELS_MAX) {
      connection.destroy()
      return fallbackReason('LIMIT', `this thread has ${CHANNELS_MAX} channels already`)
    }
    const answer = await shakeHands(connection, this.introduce(port), limit.leftMs)
    if (answer === undefined) return reasonOfFailure(address, limit)
    tellStep('client answered')
    try {
      const channel = await this.#take(answer, greeting, connection, { key, isLocal }, limit)
      return channel instanceof SocketChannel ? { channel, isShared } : channel
    } catch (error) {
      connection.destroy()
      const { code, message } = error as Error & { code?: string }
      return code === 'ERR_NIC_PEER_REFUSED'
        ? fallbackReason('OTHER_USER', message)
        : reasonOfFailure(address, limit, message)
    }
  }

  /** At a hashed port, or where the name service says; who greets first is taken. */
  async #find(address: string, port: number, family: Family, limit: TimeLimit): Promise<Greeted> {
    tellStep('client calling')
    if (isElsewhere(address, family)) return await this.#findRemote(address, port, family, limit)
    const hashed = callHashedPort(address, port, family, this.#connect)
    if (family === UNIX || !isDaemonExpected()) return await hashed
    const named = this.#findNamed(address, port, family)
    const isGreeted = (outcome: Greeted | undefined): boolean =>
      outcome !== undefined && 'connection' in outcome
    let outcome = await Promise.race([
      hashed,
      named.then(one => (isGreeted(one) ? (one as Greeted) : hashed)),
    ])
    if (!isGreeted(outcome)) outcome = (await inTime(named, lookUpMs())) ?? outcome
    for (const other of [hashed, named]) {
      void other.then(one => {
        if (one !== outcome && one !== undefined && 'connection' in one) one.connection.destroy()
      })
    }
    return outcome
  }

  async #findNamed(
    address: string,
    port: number,
    family: Family,
    limit?: TimeLimit,
  ): Promise<Greeted | undefined> {
    const question = findBootstrapPort(address, port)
    // Nobody waits longer for a daemon that hangs; the answer is there for the next connect.
    const found =
      limit === undefined
        ? await question
        : await inTime(question, Math.min(limit.leftMs, greetingTimeoutMs(LOOK_UP_MS_MAX)))
    if (found === undefined || limit?.isOver) return undefined
    return await callBootstrap(address, found, port, family, this.#connect, limit?.leftMs)
  }

  /** On another host: where the name service says, or at a hashed port if it may be asked. Who is silent is remembered. */
  async #findRemote(address: string, port: number, family: Family, limit: TimeLimit): Promise<Greeted> {
    const asking = askingOf(address, port)
    if (typeof asking === 'object') return { code: asking.code }
    // Where the name service leads must not use up the time of the hashed ports.
    const namedLimit = asking === 'named' ? limit : new TimeLimit(limit.leftMs / 2)
    const named = isDaemonExpected() ? await this.#findNamed(address, port, family, namedLimit) : undefined
    if (named !== undefined && 'connection' in named) return named
    const outcome =
      asking === 'hashed'
        ? await callHashedPort(address, port, family, this.#connect, limit.leftMs)
        : (named ?? { code: 'REMOTE_HOST', detail: 'the name service does not know it' })
    if ('code' in outcome && outcome.code === 'SILENT') rememberSilent(address)
    return outcome
  }

  #judge(greeting: Introduction): FallbackCode | undefined {
    if (driverTo(greeting) === undefined) return isHere(greeting) ? 'POLICY' : 'OTHER_HOST'
    return allowsUser(greeting.uid) ? undefined : 'OTHER_USER'
  }

  async #take(
    answer: Answer,
    peer: Introduction,
    connection: net.Socket,
    { key, isLocal }: { readonly key: string; readonly isLocal: boolean },
    limit: TimeLimit,
  ): Promise<SocketChannel | FallbackReason> {
    if (answer.result !== 0) {
      connection.destroy()
      return fallbackReason(reasonOfRefusal(answer.result))
    }
    const driver = driverTo(peer)
    if (driver === undefined || answer.driver !== driver.name) {
      connection.destroy()
      return fallbackReason('DRIVER', `the server offers ${JSON.stringify(answer.driver)}`)
    }
    let uid: number | undefined
    const end = await driver.connect(answer.blob, {
      timeoutMs: Math.min(driverTimeoutMs(), limit.leftMs),
      allowUid: one => {
        uid = one
        return allowsUser(one)
      },
      reply: bytes => connection.write(encodeReply(bytes)),
    })
    const peerId = peer.endpointId.toString('hex')
    const proved = isLocal && uid !== undefined ? keyOf(peerId, userOf(uid)) : key
    return this.#open(end, peerId, connection, proved)
  }

  /** `key`: under which connects of this thread find it, if they may use it. */
  #open(
    end: VirtualInterface,
    peerId: string,
    connection: net.Socket,
    key: string | undefined,
  ): SocketChannel {
    tellStep('channel open')
    keepFreedMemory()
    teachCopiedOptions()
    // Who polls raw sockets may never let the event loop run, which ends it.
    if (!this.#isRaw) compileEarly()
    const handleGone = (gone: SocketChannel): void => {
      if (key !== undefined && this.#channels.get(key) === gone) this.#channels.delete(key)
      const at = this.openChannels.indexOf(gone)
      if (at >= 0) this.openChannels.splice(at, 1)
    }
    const channel = new SocketChannel(end, peerId, this.#accept, handleGone, this.#isRaw)
    if (key !== undefined) this.#channels.set(key, channel)
    this.openChannels.push(channel)
    const { localAddress, remoteAddress } = connection
    if (end.driver === REMOTE_DRIVER && localAddress !== undefined && remoteAddress !== undefined)
      channel.way = { own: withoutMapping(localAddress), peer: withoutMapping(remoteAddress) }
    tieLifeline(connection, channel)
    return channel
  }
}

/** Who a peer says it is holds where it was met, and nowhere else: at an address of another host, or as a user of this one. */
function keyOf(peerId: string, place: string): string {
  return `${peerId} ${place}`
}

/** By the kernel, of a peer that has a channel; by its greeting, of one that may have. */
function userOf(uid: number): string {
  return `user ${uid}`
}

function isElsewhere(address: string, family: Family): boolean {
  return family !== UNIX && reachableOwnAddress(address) === undefined
}

/** On this host every step has a limit of its own; what another host may cost, it may cost with all of them together. */
function limitFor(address: string, family: Family): TimeLimit {
  return new TimeLimit(
    isElsewhere(address, family) ? greetingTimeoutMs(REMOTE_TIMEOUT_MS) : Number.POSITIVE_INFINITY,
  )
}

/** A host that greets, and then lets us wait, is as good as silent. */
function reasonOfFailure(address: string, limit: TimeLimit, detail?: string): FallbackReason {
  if (!limit.isOver) return fallbackReason('HANDSHAKE', detail)
  rememberSilent(address)
  return fallbackReason('SILENT', 'after the greeting nothing came in time')
}

/** Where greetings take long, the rest does, too. */
function driverTimeoutMs(): number {
  return Math.max(DRIVER_TIMEOUT_MS, greetingTimeoutMs(DRIVER_TIMEOUT_MS))
}

function isHere(peer: Introduction): boolean {
  return peer.hostIdentity.equals(hostIdentity())
}

/** Undefined if none may be used that goes there. */
function driverTo(peer: Introduction): Driver | undefined {
  if (!isHere(peer)) return remoteDriver()
  return allowsDriver(DRIVER) ? drivers.get(DRIVER) : undefined
}

/** The client's REPLY, for the driver that has made the offer; anything else ends the connection. */
function hearReply(connection: net.Socket, offer: Offer): void {
  let heard: Buffer = Buffer.alloc(0)
  const hear = (bytes: Buffer): void => {
    heard = Buffer.concat([heard, bytes])
    const length = answerLength(heard, REPLY_MAGIC)
    if (length === undefined || heard.length > length) return void connection.destroy()
    if (heard.length < length || length === ANSWER_HEADER_SIZE) return
    connection.off('data', hear)
    offer.answer?.(heard.subarray(ANSWER_HEADER_SIZE))
  }
  connection.on('data', hear)
}

/** Undefined if the driver cannot make one now, for lack of descriptors perhaps. */
function tryOffer(driver: Driver, allowUid: (uid: number) => boolean): Offer | undefined {
  try {
    const queueSize = ablation('ring')
    return driver.offer({
      timeoutMs: driverTimeoutMs(),
      allowUid,
      ...(queueSize && { queueSize }),
    })
  } catch (error) {
    log('no offer: %s', (error as Error).message)
    return undefined
  }
}
