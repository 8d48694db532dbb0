/** Both sides of connecting: from a name to a connected virtual interface. */
import type net from 'node:net'
import { constants } from 'node:os'
import {
  type Driver,
  isOwnUser,
  NicError,
  newOwnSocket,
  type Offer,
  refuseDescriptors,
  userOfPeer,
  type VirtualInterface,
} from '../../nic/index.ts'
import { clearTimeout, nextTurn, performance, setTimeout, sleep } from '../../nic/real-time.ts'
import { AmError } from '../errors.ts'
import { ControlConnection } from './control-connection.ts'
import { CONTROL_VERSION, type ControlMessage, encodeTag, type Open } from './control-messages.ts'
import { decodeName, type EndpointName, encodeName, rendezvousPath, thisHost } from './endpoint-name.ts'
import { refuse } from './reception.ts'
import { KEEP_ALIVE_MS, type TcpAddress } from './remote-rendezvous.ts'

/** A busy peer answers when its event loop runs; after this time it counts as gone. */
export const DIAL_TIMEOUT_MS = 5000
/** Interval between calls of a peer whose listen queue is full. */
const BUSY_INTERVAL_MS = 10

/** What an endpoint brings into a meeting with a peer. */
export interface Introduction {
  readonly name: EndpointName
  readonly drivers: readonly Driver[]
  readonly credits: number
}

export interface Meeting {
  readonly end: VirtualInterface
  readonly connection: ControlConnection
  readonly credits: number
}

/**
 * Connects to the endpoint of that name, or rejects with `NO_SUCH_ENDPOINT` or `UNREACHABLE`. An endpoint on
 * another host is dialled at `remote`, which only a published name gives.
 */
export async function dial(
  self: Introduction,
  target: EndpointName,
  tag: bigint,
  remote?: TcpAddress,
): Promise<Meeting> {
  const isHere = target.host === thisHost()
  const drivers = isHere ? self.drivers : self.drivers.filter(({ reach }) => reach === 'network')
  const reason = isHere ? undefined : whyNot(drivers, remote)
  if (reason !== undefined) throw unreachable(target, `it is on another host, ${reason}`)
  const connection = new ControlConnection(await connectInTime(target, isHere ? undefined : remote))
  try {
    const answer = await ask(connection, {
      op: 'open',
      version: CONTROL_VERSION,
      to: target.endpoint,
      from: encodeName(self.name),
      drivers: drivers.map(driver => driver.name),
      credits: self.credits,
      tag: encodeTag(tag),
    })
    const driver = drivers.find(({ name }) => name === answer.driver)
    if (driver === undefined) throw unreachable(target, `it offered ${answer.driver}`)
    const end = await driver.connect(Buffer.from(answer.blob, 'base64'), {
      timeoutMs: DIAL_TIMEOUT_MS,
      sharesMemory: true,
      reply: bytes => connection.send({ op: 'reply', blob: Buffer.from(bytes).toString('base64') }),
    })
    connection.unref()
    return { end, connection, credits: Math.min(self.credits, answer.credits) }
  } catch (error) {
    const isGone = error instanceof NicError && (await hasGone(connection, error))
    connection.destroy()
    if (isGone) throw missing(target, `it went while it was called: ${error.message}`, error)
    throw error instanceof NicError ? unreachable(target, error.message, error) : error
  }
}

/** Whether the peer's process ended after its offer, so that the driver could not connect. */
async function hasGone(connection: ControlConnection, error: NicError): Promise<boolean> {
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
  connection.hearNow()
  if (!isOver) await nextTurn()
  return isOver && !isRefused
}

function whyNot(drivers: readonly Driver[], remote: TcpAddress | undefined): string | undefined {
  if (drivers.length === 0) return 'which no driver reaches'
  return remote === undefined ? 'and can be asked for only by a name that it has published there' : undefined
}

/**
 * The answering side: offers the first driver that both sides have and that reaches the caller, or refuses and
 * returns undefined. A caller from another host is offered only drivers between hosts, whatever name it claims.
 */
export async function answer(
  self: Introduction,
  open: Open,
  connection: ControlConnection,
  isRemote = false,
): Promise<Meeting | undefined> {
  const caller = decodeName(open.from)
  const driver = self.drivers.find(
    candidate =>
      open.drivers.includes(candidate.name) &&
      caller !== undefined &&
      (isRemote ? candidate.reach === 'network' : reaches(candidate, self.name, caller)),
  )
  if (driver === undefined) {
    refuse(connection, 'NO_DRIVER', `none of ${open.drivers.join(', ') || 'no drivers'} is also here`)
    return undefined
  }
  const credits = Math.min(self.credits, open.credits)
  const offer = tryOffer(driver, connection)
  if (offer === undefined) return undefined
  void connection.over.then(() => offer.cancel())
  const blob = Buffer.from(offer.blob).toString('base64')
  if (offer.answer !== undefined) hearReply(connection, offer)
  connection.send({ op: 'offer', driver: driver.name, blob, credits })
  try {
    return { end: await offer.accepted, connection, credits }
  } catch (error) {
    refuse(connection, 'NO_DRIVER', `${driver.name}: ${(error as Error).message}`)
    return undefined
  }
}

/** Refuses the caller if the driver fails: it may be out of memory, or have lost its device. */
function tryOffer(driver: Driver, connection: ControlConnection): Offer | undefined {
  try {
    return driver.offer({ timeoutMs: DIAL_TIMEOUT_MS, sharesMemory: true })
  } catch (error) {
    refuse(connection, 'NO_DRIVER', `${driver.name}: ${(error as Error).message}`)
    return undefined
  }
}

/** Passes the next message to the driver; later messages wait for the next listener. */
function hearReply(connection: ControlConnection, offer: Offer): void {
  connection.listen({
    handleControl: message => {
      if (message.op !== 'reply') return connection.destroy()
      connection.hush()
      offer.answer?.(Buffer.from(message.blob, 'base64'))
    },
    handleControlEnd: () => offer.cancel(),
  })
}

function reaches(driver: Driver, self: EndpointName, caller: EndpointName): boolean {
  if (driver.reach === 'network') return true
  if (self.host !== caller.host) return false
  return driver.reach === 'host' || self.thread === caller.thread
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
async function connectInTime(target: EndpointName, remote?: TcpAddress): Promise<net.Socket> {
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

function connect(target: EndpointName, remote?: TcpAddress): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    const socket =
      remote === undefined
        ? newOwnSocket().connect({ path: rendezvousPath(target.thread) })
        : newOwnSocket().connect({
            ...remote,
            noDelay: true,
            keepAlive: true,
            keepAliveInitialDelay: KEEP_ALIVE_MS,
          })
    // On this host the kernel answers at once, so there is no timeout.
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

function ask(connection: ControlConnection, open: Open): Promise<ControlMessage & { op: 'offer' }> {
  return new Promise((resolve, reject) => {
    const fail = (error: AmError): void => {
      clearTimeout(timer)
      reject(error)
    }
    const timer = setTimeout(() => {
      fail(new AmError('ERR_AM_TIMEOUT', `${open.to} did not answer within ${DIAL_TIMEOUT_MS} ms`))
    }, DIAL_TIMEOUT_MS)
    connection.send(open)
    connection.listen({
      handleControl: message => {
        clearTimeout(timer)
        connection.hush()
        if (message.op === 'offer') return resolve(message)
        const text = message.op === 'refuse' ? message.text : `it said ${message.op}`
        const isMissing = message.op === 'refuse' && message.code === 'NO_SUCH_ENDPOINT'
        reject(new AmError(isMissing ? 'ERR_AM_NO_SUCH_ENDPOINT' : 'ERR_AM_UNREACHABLE', text))
      },
      handleControlEnd: () =>
        fail(new AmError('ERR_AM_NO_SUCH_ENDPOINT', `${open.to} hung up: its process has ended`)),
    })
  })
}

function missing(target: EndpointName, why: string, cause?: Error): AmError {
  return new AmError('ERR_AM_NO_SUCH_ENDPOINT', `nobody answers for ${encodeName(target)}: ${why}`, { cause })
}

function unreachable(target: EndpointName, why: string, cause?: Error): AmError {
  return new AmError('ERR_AM_UNREACHABLE', `${encodeName(target)} cannot be reached: ${why}`, { cause })
}
