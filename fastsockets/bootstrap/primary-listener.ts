/**
 * A bootstrap listener that the workers of a cluster share, as they share the program's own: the primary, which need not
 * be relinked, opens it and hands the callers out by its scheduling policy.
 */
import net from 'node:net'
import { markOwn } from '../../nic/index.ts'
import { clearTimeout, setTimeout } from '../../nic/real-time.ts'
import { primaryOfCluster, type ServerInternals } from '../host/node-internals.ts'
import { type Family, shadowName, UNIX } from '../host/unix-paths.ts'
import { CANDIDATE_COUNT, hashedPort } from './hashed-port.ts'

const UV_TCP_IPV6ONLY = 1
/** How net.js says that a listener has no port, or no address family: it is on a unix path. */
const NONE = -1
/** This and what is below it is none that a program could ask for. */
const NO_DESCRIPTOR = -2
/** What a primary calls its listeners: the question's address, port, address type, descriptor and, before Node 26, index. */
const OUR_KEY = /:-(?!1(?::|$))\d+(?::\d+)?$/
/** A primary that does not answer does not keep its worker for longer. */
const HELD_MS_MAX = 1000

type SharedServer = net.Server & ServerInternals

export interface SharedPlace {
  readonly port: number
  readonly address: string
  readonly family: Family
  readonly ipv6Only: boolean
}

/**
 * Listens on the first hashed port that the primary can bind. `onDone` is called with the server, before any caller can
 * have come, or with undefined if there is none.
 */
export function listenThroughPrimary(
  place: SharedPlace,
  avoid: ReadonlySet<number>,
  onDone: (server: SharedServer | undefined) => void,
): void {
  const ports = Array.from({ length: CANDIDATE_COUNT }, (_, candidate) =>
    hashedPort(place.port, candidate),
  ).filter(port => port !== place.port && !avoid.has(port))
  const queue = place.family === UNIX ? [NONE] : ports
  const tryNext = (): void => {
    const port = queue.shift()
    if (port === undefined) return onDone(undefined)
    ask(place, port, server => (server === undefined ? tryNext() : onDone(server)))
  }
  tryNext()
}

function ask(
  { port: listenerPort, address, family, ipv6Only }: SharedPlace,
  port: number,
  onDone: (server: SharedServer | undefined) => void,
): void {
  const askPrimary = primaryOfCluster()
  if (askPrimary === undefined) return onDone(undefined)
  const query = {
    address: family === UNIX ? shadowName(address) : address,
    port,
    addressType: family === UNIX ? NONE : family,
    // No descriptor; but it makes the primary tell this listener from one that the program wants on the same port.
    fd: NO_DESCRIPTOR - listenerPort,
    flags: ipv6Only ? UV_TCP_IPV6ONLY : 0,
  }
  const mayLeave = postponeLeaving()
  // Nobody listens to 'listening' here: the primary would tell the program of a listener that is not the program's.
  askPrimary({ once: () => {} }, query, (errno, handle) => {
    mayLeave()
    if (errno !== 0 || handle === null) return onDone(undefined)
    const server = new net.Server() as SharedServer
    markOwn(server)
    server.on('error', () => {})
    server._handle = handle
    server._listen2(query.address, port, query.addressType, undefined, NONE, query.flags)
    server.unref()
    // Where the kernel schedules, listen(2) is each worker's own, and may fail only now.
    onDone(server.listening ? server : undefined)
  })
}

/** Whether this is from a primary to a worker, and about one of our listeners. */
export function isAboutBootstrap(message: unknown): boolean {
  const { cmd, key } = (message ?? {}) as { cmd?: unknown; key?: unknown }
  return cmd === 'NODE_CLUSTER' && typeof key === 'string' && OUR_KEY.test(key)
}

let openQuestions = 0
let letLeave = (): void => {}

/**
 * A primary that answers a worker which has disconnected fails with EPIPE, for a question that is not the program's. So
 * the worker stays until the answer is there, when what is returned is to be called.
 */
function postponeLeaving(): () => void {
  if (openQuestions++ === 0) letLeave = holdDisconnect()
  return () => {
    openQuestions--
    if (openQuestions === 0) letLeave()
  }
}

function holdDisconnect(): () => void {
  const { disconnect } = process
  let isDue = false
  let isOver = false
  let timer: NodeJS.Timeout | undefined
  const letGo = (): void => {
    clearTimeout(timer)
    if (isOver) return
    isOver = true
    // Somebody may have wrapped it meanwhile, and goes on calling `held`.
    if (process.disconnect === held) process.disconnect = disconnect
    if (isDue && process.connected) disconnect.call(process)
  }
  const held = (): void => {
    if (isOver) return disconnect.call(process)
    isDue = true
    timer ??= setTimeout(letGo, HELD_MS_MAX)
  }
  process.disconnect = held
  return letGo
}
