/** The client's part of the bootstrap: calls the hashed port, reads the greeting, sends HELLO, reads the answer. */
import net, { type NetConnectOpts, type Socket } from 'node:net'
import { type Clock, realClock } from '../../nic/clock.ts'
import { isNoWay, openLog, refuseDescriptors, refusedName, withSocket } from '../../nic/index.ts'
import { hideConnect } from '../host/node-internals.ts'
import { publishStep } from '../host/steps.ts'
import { type Family, isFileKey, shadowName, UNIX } from '../host/unix-paths.ts'
import { type FallbackCode, type FallbackReason, fallbackReason } from '../reasons.ts'
import {
  type Answer,
  answerLength,
  decodeAnswer,
  decodeIntroduction,
  encodeIntroduction,
  GREETING_MAGIC,
  HELLO_MAGIC,
  INTRODUCTION_SIZE,
  type Introduction,
  isEarly,
  mayBe,
  VERSION,
  versionOf,
} from './bootstrap-layout.ts'
import { doorPath } from './door.ts'
import { CANDIDATE_COUNT, hashedPorts } from './hashed-port.ts'
import { type Kernel, realKernel } from './kernel.ts'

const log = openLog('fastsockets:bootstrap')

/** The most that a port which sends no greeting may cost, over all candidates together; then the connect uses TCP. */
const GREETING_TIMEOUT_MS = 80
/** Milliseconds in place of the default: on an overloaded machine a relinked server may need longer. */
const GREETING_TIMEOUT_VARIABLE = 'FASTSOCKETS_GREETING_TIMEOUT_MS'
const GREETING_TIMEOUT_MAX_MS = 60_000
/** If one candidate has not answered after this time, the client calls the next one as well. */
const PATIENCE_MS = 10
/** The same from its greeting on: a cold server needs longer for the rest. Two such waits fit into the greeting's limit. */
const FOLLOW_PATIENCE_MS = 30
/** So long a client knocks at a door where too many wait: strangers may fill its backlog again and again. */
const DOOR_PATIENCE_MS = 500
const DOOR_INTERVAL_MS = 5
/** Longer than the greeting's limit: a server that has sent a greeting is relinked, and may be busy, or load what it needs. */
const ANSWER_TIMEOUT_MS = 1000

/** How long a client waits for a greeting, unless the environment says otherwise. */
export function greetingTimeoutMs(ordinaryMs = GREETING_TIMEOUT_MS): number {
  const asked = Number(process.env[GREETING_TIMEOUT_VARIABLE])
  return asked > 0 && asked <= GREETING_TIMEOUT_MAX_MS ? asked : ordinaryMs
}

/** A greeting, not proven by anything yet, and the connection that brought it. */
export interface Greeted {
  readonly connection: Socket
  readonly greeting: Introduction
  readonly bytes: Buffer
  /** Through the rendezvous folder: the user that listens there, by the kernel. */
  readonly neighbourUid?: number
}

/** A socket in the rendezvous folder. */
interface FolderPlace {
  readonly name: string
}

/** A relinked server hangs up like this, too, while its device is away or too many clients call. */
const HUNG_UP: FallbackReason = { ...fallbackReason('STRANGER', 'it hung up without a word'), mayPass: true }

const CROWDED = fallbackReason('HANDSHAKE', 'too many callers wait at the door that the greeting names')
const NO_DOOR = fallbackReason('HANDSHAKE', 'no process listens at the door that the greeting names')

const NO_LISTENER_AT_PATH: FallbackReason = {
  code: 'NOT_RELINKED',
  text: 'no Fast Sockets listener of this network namespace or of the rendezvous folder has the unix path',
}

export type ConnectFunction = (this: Socket, options: NetConnectOpts) => Socket

/** Candidates for one listener, called side by side. Once one has proven true, the connections of the others end. */
export class Race {
  readonly #connections = new Set<Socket>()
  isOver = false

  /** Destroys `connection` when the race is over. */
  add(connection: Socket): void {
    if (this.isOver) return void connection.destroy()
    this.#connections.add(connection)
    connection.once('close', () => this.#connections.delete(connection))
  }

  /** False if another candidate has won. The winner keeps `connection`. */
  win(connection?: Socket): boolean {
    if (this.isOver) return false
    this.isOver = true
    if (connection !== undefined) this.#connections.delete(connection)
    for (const loser of this.#connections) loser.destroy()
    return true
  }
}

/** Where a client looks for the bootstrap of a listener. */
export interface Sought {
  /** On a unix path: its key. */
  readonly address: string
  readonly port: number
  readonly family: Family
  /** The receiving UDP socket of a neighbour, in place of a listener for connections. */
  readonly protocol?: 'udp'
}

/** Goes on from a greeting: what it has led to once the race is won, or the reason why the greeting proved false. */
export type Follow<T extends object> = (greeted: Greeted) => Promise<T | FallbackReason>

/**
 * Connects to the hashed port of `port` at `address`, reads the greeting, and follows it; it sends a byte only to a server in its first phase. The
 * client calls the candidates in order: the next one after a candidate has refused or proved false, or after
 * PATIENCE_MS without a greeting, FOLLOW_PATIENCE_MS without a channel; the earlier call goes on. The first candidate that proves true wins.
 */
export function callHashedPort<T extends object>(
  { address, port, family }: Sought,
  connect: ConnectFunction,
  race: Race,
  follow: Follow<T>,
  limitMs = greetingTimeoutMs(),
  kernel = realKernel,
): Promise<T | FallbackReason> {
  const { clock } = kernel
  const candidates = candidatesFor(address, port, family)
  // The kernel judges access to files of other users: no relinked server of another user has a shadow for us.
  const mayServe = family === UNIX && isFileKey(address) ? kernel.isOwnUser : kernel.allowsUser
  const deadlineMs = clock.now() + limitMs
  return new Promise(resolve => {
    let underWay = 0
    let next = 0
    let worst = family === UNIX ? NO_LISTENER_AT_PATH : fallbackReason('NOT_RELINKED')

    const handle = (outcome: T | FallbackReason): void => {
      underWay--
      if (!('code' in outcome)) return resolve(outcome)
      if (outcome.code !== 'NOT_RELINKED') worst = outcome
      callNext()
    }
    const callNext = (): void => {
      const candidate = race.isOver ? undefined : candidates[next++]
      if (candidate === undefined) {
        if (underWay === 0) resolve(worst)
        return
      }
      underWay++
      let impatience = clock.setTimeout(callNext, PATIENCE_MS)
      const proceed = (greeted: Greeted): Promise<T | FallbackReason> => {
        clock.clearTimeout(impatience)
        impatience = clock.setTimeout(callNext, FOLLOW_PATIENCE_MS)
        return follow(greeted)
      }
      void call(candidate, port, connect, Math.max(deadlineMs - clock.now(), 0), race, kernel, mayServe)
        .then(outcome => ('code' in outcome ? outcome : proceed(outcome)))
        .catch(error => fallbackReason('HANDSHAKE', (error as Error).message))
        .then(outcome => {
          clock.clearTimeout(impatience)
          handle(outcome)
        })
    }
    callNext()
  })
}

/** Where the listener's bootstrap may be, in the order in which the listener tried to bind. */
function candidatesFor(address: string, port: number, family: Family): NetConnectOpts[] {
  if (family !== UNIX)
    return hashedPorts(port).map(hashed => ({ host: address, port: hashed, family, noDelay: true }))
  return Array.from({ length: CANDIDATE_COUNT }, (_, candidate) => ({ path: shadowName(address, candidate) }))
}

/** Reads the greeting at one port that is said to be the bootstrap's. */
export async function callBootstrap(
  { address, port, family }: Sought,
  bootstrapPort: number,
  connect: ConnectFunction,
  race: Race,
  limitMs = greetingTimeoutMs(),
  kernel = realKernel,
): Promise<Greeted | FallbackReason> {
  return await call(
    { host: address, port: bootstrapPort, family, noDelay: true },
    port,
    connect,
    limitMs,
    race,
    kernel,
  )
}

/**
 * Reads the greeting at a name of the rendezvous folder. A name that refuses is called once more: another listener may just
 * have replaced it.
 */
export async function callNeighbour(
  name: string,
  port: number,
  connect: ConnectFunction,
  race: Race,
  kernel = realKernel,
): Promise<Greeted | FallbackReason> {
  const callOnce = (): Promise<Greeted | FallbackReason> =>
    call({ name }, port, connect, greetingTimeoutMs(), race, kernel)
  const first = await callOnce()
  return 'code' in first && first.code === 'NO_RENDEZVOUS' ? await callOnce() : first
}

/** Connects to a candidate; the reason if there is nothing to connect to. */
function dial(
  connection: Socket,
  place: NetConnectOpts | FolderPlace,
  connect: ConnectFunction,
  { allowsUser }: Kernel,
): FallbackReason | undefined {
  if (!('name' in place)) {
    connect.call(connection, place)
    return undefined
  }
  const outcome = withSocket(place.name, allowsUser, path => connect.call(connection, { path }))
  if (!isNoWay(outcome)) return undefined
  return fallbackReason(outcome.code === 'OTHER_OWNER' ? 'OTHER_USER' : 'NO_RENDEZVOUS', outcome.text)
}

function reasonOfRefusedName(name: string, { code }: NodeJS.ErrnoException): FallbackReason {
  return fallbackReason('NO_RENDEZVOUS', refusedName(name, code === 'ECONNREFUSED' ? undefined : code).text)
}

/**
 * A greeting for `port`, or why there is none. `mayServe`: judges the listener on a unix path by the user id that the
 * kernel reports.
 */
function call(
  options: NetConnectOpts | FolderPlace,
  port: number,
  connect: ConnectFunction,
  timeoutMs: number,
  race: Race,
  kernel: Kernel,
  mayServe = kernel.allowsUser,
): Promise<Greeted | FallbackReason> {
  const { clock } = kernel
  return new Promise(resolve => {
    log('calling %o', options)
    // The same order as in the program: connect first, then add listeners. V8 has compiled that path.
    const connection = new net.Socket()
    const failure = dial(connection, options, connect, kernel)
    if (failure !== undefined) return resolve(failure)
    race.add(connection)
    let neighbourUid: number | undefined
    let received: Buffer = Buffer.alloc(0)
    let isSettled = false
    const settle = (outcome: Greeted | FallbackReason): void => {
      if (isSettled) return
      isSettled = true
      clock.clearTimeout(timer)
      connection.removeAllListeners()
      connection.on('error', () => {})
      race.add(connection)
      if ('code' in outcome) connection.destroy()
      resolve(outcome)
    }
    const fail = (code: FallbackCode, detail?: string): void => settle(fallbackReason(code, detail))
    const giveUp = (): void => afterIo(clock, () => fail('SILENT'))
    let timer = clock.setTimeout(giveUp, timeoutMs)
    connection.on('error', error =>
      'name' in options ? settle(reasonOfRefusedName(options.name, error)) : fail('NOT_RELINKED'),
    )
    connection.on('close', () => (received.length > 0 ? fail('STRANGER') : settle(HUNG_UP)))
    connection.on('connect', () => {
      hideConnect(connection)
      // An unused port of the ephemeral range can connect to itself (TCP simultaneous open).
      if ('port' in options) {
        if (connection.localPort === options.port) fail('NOT_RELINKED')
        return
      }
      refuseDescriptors(connection)
      const uid = kernel.userOf(connection)
      if (uid === undefined || !mayServe(uid)) return fail('OTHER_USER', `its socket is of user ${uid}`)
      if ('name' in options) neighbourUid = uid
    })
    connection.on('data', bytes => {
      received = Buffer.concat([received, bytes])
      if (!mayBe(GREETING_MAGIC, received)) return fail('STRANGER')
      const version = versionOf(received)
      if (version === undefined) return
      // Other versions may send more or fewer bytes: only the first 12 are the same in all of them.
      if (version !== VERSION) return fail('VERSION', `ours is ${VERSION}, theirs ${version}`)
      if (received.length > INTRODUCTION_SIZE) return fail('STRANGER')
      if (isEarly(received, port) && !('name' in options)) {
        // The server now loads what is needed.
        clock.clearTimeout(timer)
        timer = clock.setTimeout(giveUp, Math.max(ANSWER_TIMEOUT_MS, timeoutMs))
        connection.write(HELLO_MAGIC)
        return
      }
      const greeting = decodeIntroduction(GREETING_MAGIC, received)
      if (greeting === undefined) return
      // The hashed port of another listener.
      if (greeting.port !== port) return fail('NOT_RELINKED')
      connection.pause()
      settle({ connection, greeting, bytes: received, ...(neighbourUid !== undefined && { neighbourUid }) })
    })
  })
}

/** Our own event loop may be late: a greeting or answer that has arrived is read within two iterations. */
function afterIo(clock: Clock, action: () => void): void {
  clock.setImmediate(() => clock.setImmediate(action))
}

/**
 * Connects to the door that a greeting names. connect(2) of a unix socket never waits, as libuv's sockets do not block: if
 * too many callers wait there it fails (unix(7), EAGAIN), and is tried again for `DOOR_PATIENCE_MS`. Hangs up without sending a
 * byte if the policy does not allow the user that listens there; the reason then says why there is no connection.
 */
export async function callDoor(
  door: Buffer,
  connect: ConnectFunction,
  race: Race,
  kernel = realKernel,
): Promise<Socket | FallbackReason> {
  const { clock } = kernel
  const endMs = clock.now() + DOOR_PATIENCE_MS
  for (;;) {
    const outcome = await callDoorOnce(door, connect, race, kernel)
    if (outcome !== CROWDED || race.isOver || clock.now() >= endMs) return outcome
    await new Promise<void>(resolve => clock.setTimeout(resolve, DOOR_INTERVAL_MS))
  }
}

function callDoorOnce(
  door: Buffer,
  connect: ConnectFunction,
  race: Race,
  kernel: Kernel,
): Promise<Socket | FallbackReason> {
  return new Promise(resolve => {
    const connection = new net.Socket()
    connect.call(connection, { path: doorPath(door) })
    const settle = (outcome: Socket | FallbackReason): void => {
      connection.removeAllListeners()
      connection.on('error', () => {})
      race.add(connection)
      if (outcome !== connection) connection.destroy()
      resolve(outcome)
    }
    connection.on('error', ({ code }: NodeJS.ErrnoException) => settle(code === 'EAGAIN' ? CROWDED : NO_DOOR))
    connection.on('connect', () => {
      hideConnect(connection)
      refuseDescriptors(connection)
      const uid = kernel.userOf(connection)
      if (uid === undefined) return settle(fallbackReason('HANDSHAKE', 'the server has gone'))
      connection.pause()
      settle(
        kernel.allowsUser(uid) ? connection : fallbackReason('OTHER_USER', `its socket is of user ${uid}`),
      )
    })
  })
}

/** The bytes that both sides have sent from the HELLO on. */
export interface Shaken {
  readonly answer: Answer
  readonly helloBytes: Buffer
  readonly answerBytes: Buffer
}

/** Sends HELLO and waits for the answer; undefined if no valid answer came in time. */
export function shakeHands(
  connection: Socket,
  hello: Introduction,
  limitMs: number,
  clock = realClock,
): Promise<Shaken | undefined> {
  return new Promise(resolve => {
    const helloBytes = encodeIntroduction(HELLO_MAGIC, hello)
    let received: Buffer = Buffer.alloc(0)
    let isSettled = false
    const settle = (answer: Answer | undefined): void => {
      if (isSettled) return
      isSettled = true
      clock.clearTimeout(timer)
      connection.removeAllListeners()
      connection.on('error', () => {})
      if (answer === undefined) connection.destroy()
      resolve(answer && { answer, helloBytes, answerBytes: received })
    }
    const ordinaryMs = Math.max(ANSWER_TIMEOUT_MS, greetingTimeoutMs(0))
    const timer = clock.setTimeout(
      () => afterIo(clock, () => settle(undefined)),
      Math.min(ordinaryMs, limitMs),
    )
    connection.on('error', () => settle(undefined))
    connection.on('close', () => settle(undefined))
    connection.on('data', bytes => {
      received = Buffer.concat([received, bytes])
      const length = answerLength(received)
      if (length === undefined || received.length > length) return settle(undefined)
      if (received.length === length && length > 0) {
        const answer = decodeAnswer(received)
        if (answer !== undefined) settle(answer)
      }
    })
    connection.resume()
    connection.write(helloBytes)
    publishStep('client introduced')
  })
}
