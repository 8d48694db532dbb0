/** Both sides of connecting: from a name to a connected virtual interface. */
import type net from 'node:net'
import { constants } from 'node:os'
import { type Clock, nextTurnOf, realClock } from '../../nic/clock.ts'
import {
  callTcpAddress,
  type Driver,
  endpointsName,
  hasName,
  isNoWay,
  isOwnUser,
  isSameKernel,
  NicError,
  newOwnSocket,
  type Offer,
  reasonAgainstFolder,
  refuseDescriptors,
  rendezvousFolder,
  userOfPeer,
  type VirtualInterface,
  withSocket,
} from '../../nic/index.ts'
import { performance } from '../../nic/performance.ts'
import { clearTimeout, setTimeout, sleep } from '../../nic/real-time.ts'
import { AmError } from '../errors.ts'
import { ControlConnection, type ControlSocket } from './control-connection.ts'
import { CONTROL_VERSION, type ControlMessage, encodeTag, type Open } from './control-messages.ts'
import { DriverChoice } from './driver-choice.ts'
import { decodeName, type EndpointName, encodeName, rendezvousPath } from './endpoint-name.ts'
import { isOfThisHost, type Origin, refuse } from './reception.ts'
import { KEEP_ALIVE_MS } from './remote-rendezvous.ts'
import { encodeTcpAddress, type TcpAddress } from './tcp-address.ts'

/** A busy peer answers when its event loop runs; after this time it counts as gone. */
export const DIAL_TIMEOUT_MS = 5000
/** Interval between calls of a peer whose listen queue is full. */
const BUSY_INTERVAL_MS = 10

/** What an endpoint brings into a meeting with a peer. */
export interface Introduction {
  readonly name: EndpointName
  /** In order of preference, usable here or not. */
  readonly drivers: readonly Driver[]
  readonly credits: number
  readonly peerTimeoutMs?: number
  /** By default the real one. */
  readonly clock?: Clock
  /** Calls a process of another host where it listens; by default by TCP. */
  readonly callAddress?: CallAddress
}

export type CallAddress = (address: TcpAddress, timeoutMs: number) => Promise<ControlSocket>

export interface Meeting {
  readonly end: VirtualInterface
  readonly connection: ControlConnection
  readonly credits: number
  /** Why no preferred driver connects the two; undefined if none is preferred. */
  readonly whyNotBetter: string | undefined
}

/**
 * Connects to the endpoint of that name by the best driver that both have, or rejects with `NO_SUCH_ENDPOINT` or
 * `UNREACHABLE`. An endpoint in another network namespace is dialled through the rendezvous folder, one on another host
 * at the address in its name, or, over RDMA, at `remote`, which only a published name gives.
 */
export async function dial(
  self: Introduction,
  target: EndpointName,
  tag: bigint,
  remote?: TcpAddress,
): Promise<Meeting> {
  const choice = new DriverChoice(self.drivers)
  const isHere = target.host === self.name.host
  const { clock = realClock, callAddress = callTcpAddress } = self
  if (!isHere) choice.ruleOut(driver => whyNotElsewhere(driver, target, remote))
  let failure: unknown
  while (choice.left.length > 0) {
    if (!isHere && choice.left.some(isOfHost)) {
      try {
        const socket = await connectInTime(target, THROUGH_FOLDER)
        return await meet(self, target, tag, new ControlConnection(socket), choice, THROUGH_FOLDER)
      } catch (error) {
        failure = error
        // The peer may have another way.
        choice.ruleOut(one => (isOfHost(one) ? (error as Error).message : undefined))
        continue
      }
    }
    const drivers = choice.left
    // Where the key is shown, any driver may be offered; the address of an RDMA device is for RDMA only.
    const address = !isHere && drivers.some(({ needsAddress }) => needsAddress) ? target.address : undefined
    try {
      const socket =
        address === undefined
          ? await connectInTime(target, isHere ? undefined : remote)
          : await callAddress(address, DIAL_TIMEOUT_MS)
      return await meet(self, target, tag, new ControlConnection(socket, clock), choice, address)
    } catch (error) {
      failure = error
      const reason = (error as Error).message
      if (error instanceof NotConnected) choice.ruleOut(one => (one === error.driver ? reason : undefined))
      else if (error instanceof NicError) choice.ruleOut(one => noteFailedCall(one, error, remote))
      else if ((error as AmError).code !== 'ERR_AM_UNREACHABLE') throw error
      else choice.ruleOut(() => reason)
    }
  }
  if ((failure as AmError | undefined)?.code === 'ERR_AM_NO_SUCH_ENDPOINT') throw failure
  if (isRefusedConnect(failure)) throw missing(target, String(choice), failure as Error)
  throw unreachable(target, String(choice), failure as Error | undefined)
}

/** Stands for an address: the endpoint is called at its thread's name in the rendezvous folder. */
const THROUGH_FOLDER = 'folder'

function isOfHost({ reach }: Driver): boolean {
  return reach === 'host'
}

/** The other side was reached, and the driver that it offered does not connect. */
class NotConnected extends Error {
  readonly driver: Driver

  constructor(driver: Driver, cause: Error) {
    super(cause.message, { cause })
    this.driver = driver
  }
}

/** Offers what is left of `choice` over a connection, and connects by the driver that the other side chooses. */
async function meet(
  self: Introduction,
  target: EndpointName,
  tag: bigint,
  connection: ControlConnection,
  choice: DriverChoice,
  place: TcpAddress | typeof THROUGH_FOLDER | undefined,
): Promise<Meeting> {
  const isThroughFolder = place === THROUGH_FOLDER
  const address = isThroughFolder ? undefined : place
  const drivers = isThroughFolder ? choice.left.filter(isOfHost) : choice.left
  const { clock = realClock } = self
  let driver: Driver | undefined
  try {
    const answer = await ask(
      connection,
      {
        op: 'open',
        version: CONTROL_VERSION,
        to: target.endpoint,
        from: encodeName(self.name),
        drivers: drivers.map(driver => driver.name),
        credits: self.credits,
        tag: encodeTag(tag),
      },
      clock,
    )
    driver = drivers.find(({ name }) => name === answer.driver)
    if (driver === undefined) throw unreachable(target, `it offered ${answer.driver}`)
    await turnToOpen(clock)
    const end = await driver.connect(Buffer.from(answer.blob, 'base64'), {
      timeoutMs: DIAL_TIMEOUT_MS,
      sharesMemory: true,
      isThroughFolder,
      ...(address && { address }),
      ...(connection.path && { path: connection.path }),
      ...(self.peerTimeoutMs && { peerTimeoutMs: self.peerTimeoutMs }),
      reply: bytes => connection.send({ op: 'reply', blob: Buffer.from(bytes).toString('base64') }),
    })
    connection.unref()
    if (self.peerTimeoutMs !== undefined) connection.limitSilence(self.peerTimeoutMs)
    const credits = Math.min(self.credits, answer.credits)
    if (target.thread !== self.name.thread)
      choice.ruleOut(one => (one.reach === 'thread' ? 'the endpoint is in another thread' : undefined))
    return {
      end,
      connection,
      credits,
      whyNotBetter: choice.whyNotBetter(driver, 'the peer has not offered it'),
    }
  } catch (error) {
    const isGone = error instanceof NicError && (await hasGone(connection, error, clock))
    connection.destroy()
    if (isGone) throw missing(target, `it went while it was called: ${error.message}`, error)
    throw error instanceof NicError && driver !== undefined ? new NotConnected(driver, error) : error
  }
}

/** Asks which endpoint listens at the address. `drivers`: what the caller would use, for the reasons. */
export async function askAddress(address: TcpAddress, drivers: readonly Driver[]): Promise<EndpointName> {
  const where = encodeTcpAddress(address)
  let connection: ControlConnection
  try {
    connection = new ControlConnection(await callTcpAddress(address, DIAL_TIMEOUT_MS))
  } catch (error) {
    const choice = new DriverChoice(drivers)
    const { message } = error as Error
    choice.ruleOut(({ needsAddress }) =>
      needsAddress ? message : 'which endpoint listens at the address is not known',
    )
    const [code, what] = isRefusedConnect(error)
      ? (['ERR_AM_NO_SUCH_ENDPOINT', `no endpoint listens at ${where}`] as const)
      : (['ERR_AM_UNREACHABLE', `${where} cannot be reached`] as const)
    throw new AmError(code, `${what}: ${choice}`, { cause: error })
  }
  try {
    const answer = await converse(connection, { op: 'who' }, where, realClock)
    const name = answer.op === 'here' ? decodeName(answer.name) : undefined
    if (name !== undefined) return { ...name, address }
    throw new AmError('ERR_AM_NO_SUCH_ENDPOINT', `no endpoint listens at ${where}`)
  } finally {
    connection.destroy()
  }
}

/** No socket listens where the endpoint was. */
function isRefusedConnect(error: unknown): boolean {
  return error instanceof NicError && error.errno === constants.errno.ECONNREFUSED
}

/** A call of a TCP address has failed: other drivers may still have an address of their own. */
function noteFailedCall(driver: Driver, error: NicError, remote: TcpAddress | undefined): string | undefined {
  return driver.needsAddress || remote === undefined ? error.message : undefined
}

/** Whether the peer's process ended after its offer, so that the driver could not connect. */
async function hasGone(connection: ControlConnection, error: NicError, clock: Clock): Promise<boolean> {
  if (error.errno === constants.errno.ECONNREFUSED) return true
  let isRefused = false
  let isOver = false
  connection.listen({
    handleControl: ({ op }) => {
      isRefused ||= op === 'refuse'
    },
    handleControlEnd: () => {
      isOver = true
    },
  })
  connection.checkNow()
  if (!isOver) await nextTurnOf(clock)
  return isOver && !isRefused
}

/** Why the driver cannot reach an endpoint of another host, by what its name says. */
function whyNotElsewhere(
  driver: Driver,
  target: EndpointName,
  remote: TcpAddress | undefined,
): string | undefined {
  if (driver.reach === 'thread') return whereElse(target)
  if (driver.reach === 'host') return whyNotThroughFolder(target)
  if (target.address !== undefined || (remote !== undefined && !driver.needsAddress)) return undefined
  return driver.needsAddress
    ? 'the name carries no address: open the endpoint with `listen`'
    : 'the endpoint can be asked for only at an address, or by a name that it has published'
}

function whereElse({ host }: EndpointName): string {
  return isSameKernel(Buffer.from(host, 'hex'))
    ? 'the endpoint is in another network namespace'
    : 'the endpoint is on another host'
}

function whyNotThroughFolder(target: EndpointName): string | undefined {
  const name = endpointsName(target.thread)
  if (hasName(name)) return undefined
  const missing = `there is no ${rendezvousFolder()}/${name}`
  return `${whereElse(target)}, and ${reasonAgainstFolder(false) ?? missing}`
}

/**
 * The answering side: offers the first driver that both sides have and that reaches the caller, or refuses and
 * returns undefined. A caller that may be on another host is offered only drivers between hosts, whatever name it
 * claims.
 */
export async function answer(
  self: Introduction,
  open: Open,
  connection: ControlConnection,
  origin: Origin = 'host',
): Promise<Meeting | undefined> {
  const caller = decodeName(open.from)
  const choice = new DriverChoice(self.drivers)
  choice.ruleOut(one => (open.drivers.includes(one.name) ? undefined : 'the peer has not offered it'))
  choice.ruleOut(one => whyNotTo(one, self.name, caller, origin))
  if (choice.left.length === 0) {
    refuse(connection, 'NO_DRIVER', `none of ${open.drivers.join(', ') || 'no drivers'} is also here`)
    return undefined
  }
  const credits = Math.min(self.credits, open.credits)
  await turnToOpen(self.clock ?? realClock)
  const found = offerBest(choice, connection, origin, self.peerTimeoutMs)
  if (found === undefined) {
    refuse(connection, 'NO_DRIVER', String(choice))
    return undefined
  }
  const { driver, offer } = found
  if (self.peerTimeoutMs !== undefined) connection.limitSilence(self.peerTimeoutMs)
  void connection.over.then(() => offer.cancel())
  const blob = Buffer.from(offer.blob).toString('base64')
  if (offer.answer !== undefined) awaitReply(connection, offer)
  connection.send({ op: 'offer', driver: driver.name, blob, credits })
  try {
    return { end: await offer.accepted, connection, credits, whyNotBetter: choice.whyNotBetter(driver, '') }
  } catch (error) {
    refuse(connection, 'NO_DRIVER', `${driver.name}: ${(error as Error).message}`)
    return undefined
  }
}

let opened: Promise<void> = Promise.resolve()

/**
 * One interface is opened in each iteration of the event loop: some need 20 ms of the kernel, and peers that wait for others
 * hear of this side in between.
 */
async function turnToOpen(clock: Clock): Promise<void> {
  if (clock !== realClock) return
  opened = opened.then(() => nextTurnOf(clock))
  await opened
}

/** The first driver that makes an offer: one may be out of memory, or have no device that leads to the caller. */
function offerBest(
  choice: DriverChoice,
  connection: ControlConnection,
  origin: Origin,
  peerTimeoutMs: number | undefined,
): { readonly driver: Driver; readonly offer: Offer } | undefined {
  for (const driver of choice.left) {
    try {
      const offer = driver.offer({
        timeoutMs: DIAL_TIMEOUT_MS,
        sharesMemory: true,
        hasAddress: origin === 'tcp' && driver.needsAddress === true,
        isThroughFolder: origin === 'folder',
        ...(connection.path && { path: connection.path }),
        ...(peerTimeoutMs && { peerTimeoutMs }),
      })
      return { driver, offer }
    } catch (error) {
      choice.ruleOut(one => (one === driver ? (error as Error).message : undefined))
    }
  }
  return undefined
}

/** Passes the next message to the driver; later messages wait for the next listener. */
function awaitReply(connection: ControlConnection, offer: Offer): void {
  connection.listen({
    handleControl: message => {
      if (message.op !== 'reply') return connection.destroy()
      connection.hush()
      offer.answer?.(Buffer.from(message.blob, 'base64'))
    },
    handleControlEnd: () => offer.cancel(),
  })
}

/** Why the driver may not connect with the caller. */
function whyNotTo(
  driver: Driver,
  self: EndpointName,
  caller: EndpointName | undefined,
  origin: Origin,
): string | undefined {
  if (caller === undefined) return 'the caller has no name'
  if (origin === 'rdma' && driver.needsAddress) return 'the peer has called over RDMA'
  if (driver.reach === 'network') return undefined
  if (!isOfThisHost(origin) || (origin === 'host' && self.host !== caller.host))
    return 'the peer is on another host'
  return driver.reach === 'host' || self.thread === caller.thread
    ? undefined
    : 'the peer is in another thread'
}

/** Whether the thread of that endpoint, on this host, may still run. A thread too busy to answer counts as alive. */
export function isAlive(target: EndpointName): Promise<boolean> {
  return connect(target).then(
    socket => {
      socket.destroy()
      return true
    },
    error => (error as AmError).code !== 'ERR_AM_NO_SUCH_ENDPOINT',
  )
}

/** Tries again while the listen queue is full: a busy thread lets only so many callers wait. */
async function connectInTime(target: EndpointName, remote?: Place): Promise<net.Socket> {
  const deadlineMs = performance.now() + DIAL_TIMEOUT_MS
  for (;;) {
    try {
      return await connect(target, remote)
    } catch (error) {
      const { code } = ((error as AmError).cause ?? {}) as NodeJS.ErrnoException
      if (code !== 'EAGAIN' || performance.now() >= deadlineMs) throw error
    }
    await sleep(BUSY_INTERVAL_MS)
  }
}

type Place = TcpAddress | typeof THROUGH_FOLDER

/** Throws if the rendezvous folder does not have the thread any more. */
function call(target: EndpointName, place: Place | undefined): net.Socket {
  const socket = newOwnSocket()
  if (place === undefined) return socket.connect({ path: rendezvousPath(target.thread) })
  if (place === THROUGH_FOLDER) {
    const call = withSocket(endpointsName(target.thread), isOwnUser, path => socket.connect({ path }))
    if (!isNoWay(call)) return socket
    throw call.code === 'NO_NAME' ? missing(target, call.text) : unreachable(target, call.text)
  }
  const options = { noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS }
  return socket.connect({ ...place, ...options })
}

function connect(target: EndpointName, place?: Place): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    const socket = call(target, place)
    // On this host the kernel answers at once, so there is no timeout.
    const remote = place === THROUGH_FOLDER ? undefined : place
    const timer =
      remote &&
      setTimeout(() => {
        socket.destroy()
        reject(new AmError('ERR_AM_TIMEOUT', `the host of ${encodeName(target)} did not answer in time`))
      }, DIAL_TIMEOUT_MS)
    socket.once('connect', () => {
      clearTimeout(timer)
      socket.off('error', refused)
      refuseDescriptors(socket)
      if (remote !== undefined || isOwnUser(userOfPeer(socket))) return resolve(socket)
      // Any user may take the address of a thread that has ended. A stranger must not learn our tag.
      socket.destroy()
      reject(missing(target, 'another user has its address'))
    })
    const refused = (cause: NodeJS.ErrnoException): void => {
      clearTimeout(timer)
      if (cause.code !== 'ECONNREFUSED') return reject(unreachable(target, cause.message, cause))
      reject(missing(target, 'its thread or process has ended', cause))
    }
    socket.once('error', refused)
  })
}

async function ask(
  connection: ControlConnection,
  open: Open,
  clock: Clock,
): Promise<ControlMessage & { op: 'offer' }> {
  const message = await converse(connection, open, open.to, clock)
  if (message.op === 'offer') return message
  const text = message.op === 'refuse' ? message.text : `it said ${message.op}`
  const isMissing = message.op === 'refuse' && message.code === 'NO_SUCH_ENDPOINT'
  throw new AmError(isMissing ? 'ERR_AM_NO_SUCH_ENDPOINT' : 'ERR_AM_UNREACHABLE', text)
}

/** Sends one message and resolves with the next one of the other side; later messages wait for the next listener. */
function converse(
  connection: ControlConnection,
  message: ControlMessage,
  who: string,
  clock: Clock,
): Promise<ControlMessage> {
  return new Promise((resolve, reject) => {
    const fail = (error: AmError): void => {
      clock.clearTimeout(timer)
      reject(error)
    }
    const timer = clock.setTimeout(() => {
      fail(new AmError('ERR_AM_TIMEOUT', `${who} did not answer within ${DIAL_TIMEOUT_MS} ms`))
    }, DIAL_TIMEOUT_MS)
    connection.send(message)
    connection.listen({
      handleControl: answer => {
        clock.clearTimeout(timer)
        connection.hush()
        resolve(answer)
      },
      handleControlEnd: () =>
        fail(new AmError('ERR_AM_NO_SUCH_ENDPOINT', `${who} hung up: its process has ended`)),
    })
  })
}

function missing(target: EndpointName, why: string, cause?: Error): AmError {
  return new AmError('ERR_AM_NO_SUCH_ENDPOINT', `no endpoint answers for ${encodeName(target)}: ${why}`, {
    cause,
  })
}

function unreachable(target: EndpointName, why: string, cause?: Error): AmError {
  return new AmError('ERR_AM_UNREACHABLE', `${encodeName(target)} cannot be reached: ${why}`, { cause })
}
