/** Both ends of the way from a name to a connected virtual interface. */
import type net from 'node:net'
import { type Driver, NicError, newOwnSocket, type Offer, type VirtualInterface } from '../../nic/index.ts'
import { AmError } from '../errors.ts'
import { ControlConnection } from './control-connection.ts'
import { CONTROL_VERSION, type ControlMessage, encodeTag, type Open } from './control-messages.ts'
import { decodeName, type EndpointName, encodeName, rendezvousPath, thisHost } from './endpoint-name.ts'
import { refuse } from './rendezvous.ts'

/** A peer that is busy answers when it comes to its event loop; after this it is not there. */
const DIAL_TIMEOUT_MS = 5000

/** Who we are, to whoever is on the other side. */
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

/** Connects to the endpoint of that name, or rejects with `NO_SUCH_ENDPOINT` or `UNREACHABLE`. */
export async function dial(self: Introduction, target: EndpointName, tag: bigint): Promise<Meeting> {
  if (target.host !== thisHost()) {
    throw new AmError(
      'ERR_AM_UNREACHABLE',
      `${encodeName(target)} is on another host, which no driver reaches`,
    )
  }
  const connection = new ControlConnection(await connect(target))
  try {
    const answer = await ask(connection, {
      op: 'open',
      version: CONTROL_VERSION,
      to: target.endpoint,
      from: encodeName(self.name),
      drivers: self.drivers.map(driver => driver.name),
      credits: self.credits,
      tag: encodeTag(tag),
    })
    const driver = self.drivers.find(({ name }) => name === answer.driver)
    if (driver === undefined) throw unreachable(target, `it offered ${answer.driver}`)
    const end = await driver.connect(Buffer.from(answer.blob, 'base64'), {
      timeoutMs: DIAL_TIMEOUT_MS,
      reply: bytes => connection.send({ op: 'reply', blob: Buffer.from(bytes).toString('base64') }),
    })
    connection.unref()
    return { end, connection, credits: Math.min(self.credits, answer.credits) }
  } catch (error) {
    connection.destroy()
    throw error instanceof NicError ? unreachable(target, error.message, error) : error
  }
}

/** The answering side: offers the first driver that both have and that reaches, or refuses and returns undefined. */
export async function answer(
  self: Introduction,
  open: Open,
  connection: ControlConnection,
): Promise<Meeting | undefined> {
  const caller = decodeName(open.from)
  const driver = self.drivers.find(
    candidate =>
      open.drivers.includes(candidate.name) && caller !== undefined && reaches(candidate, self.name, caller),
  )
  if (driver === undefined) {
    refuse(connection, 'NO_DRIVER', `none of ${open.drivers.join(', ') || 'no drivers'} is also here`)
    return undefined
  }
  const credits = Math.min(self.credits, open.credits)
  const offer = driver.offer({ timeoutMs: DIAL_TIMEOUT_MS })
  void connection.over.then(() => offer.cancel())
  const blob = Buffer.from(offer.blob).toString('base64')
  if (offer.answer !== undefined) hearReply(connection, offer)
  connection.send({ op: 'offer', driver: driver.name, blob, credits })
  try {
    return { end: await offer.accepted, connection, credits }
  } catch {
    connection.destroy()
    return undefined
  }
}

/** The next word is the driver's, and the one after it is somebody else's again. */
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

/** Whether the thread of that endpoint, on this host, may still be there: it may be too busy to answer. */
export function isAlive(target: EndpointName): Promise<boolean> {
  return connect(target).then(
    socket => {
      socket.destroy()
      return true
    },
    error => (error.cause as NodeJS.ErrnoException).code !== 'ECONNREFUSED',
  )
}

function connect(target: EndpointName): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    const socket = newOwnSocket().connect({ path: rendezvousPath(target.thread) })
    socket.once('connect', () => {
      socket.off('error', refused)
      resolve(socket)
    })
    const refused = (cause: Error): void => {
      const message = `nobody answers for ${encodeName(target)}: its thread or process has ended`
      reject(new AmError('ERR_AM_NO_SUCH_ENDPOINT', message, { cause }))
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

function unreachable(target: EndpointName, why: string, cause?: Error): AmError {
  return new AmError('ERR_AM_UNREACHABLE', `${encodeName(target)} cannot be reached: ${why}`, { cause })
}
