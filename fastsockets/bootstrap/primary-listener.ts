/**
 * A bootstrap listener that the workers of a cluster share, as they share the program's own. The primary, which need
 * not be relinked, opens it and distributes the callers by its scheduling policy.
 */
import net, { type Server } from 'node:net'
import { markOwn } from '../../nic/index.ts'
import { clearTimeout, setTimeout } from '../../nic/real-time.ts'
import { primaryOfCluster, type ServerInternals } from '../host/node-internals.ts'
import { type Family, shadowName, UNIX } from '../host/unix-paths.ts'
import { CANDIDATE_COUNT, hashedPort } from './hashed-port.ts'

const UV_TCP_IPV6ONLY = 1
/** By this number net.js means "no port" or "no address family": a unix path. */
const NONE = -1
/** Descriptor numbers from here down: no program can ask for them. */
const NO_DESCRIPTOR = -2
/** The worker may disconnect after this time even if the primary has not answered. */
const DELAY_MS_MAX = 1000

type SharedServer = Server & ServerInternals

export interface SharedPlace {
  readonly port: number
  readonly address: string
  readonly family: Family
  readonly ipv6Only: boolean
}

/**
 * Listens on the first candidate that the primary can bind. Calls `onDone` with the server before any caller can
 * arrive, or with undefined if there is none.
 */
export function listenThroughPrimary(
  place: SharedPlace,
  avoid: ReadonlySet<number>,
  onDone: (server: SharedServer | undefined) => void,
): void {
  const candidates = Array.from({ length: CANDIDATE_COUNT }, (_, candidate) => candidate)
  const { address, family } = place
  const queue =
    family === UNIX
      ? candidates.map(candidate => ({ address: shadowName(address, candidate), port: NONE }))
      : candidates
          .map(candidate => ({ address, port: hashedPort(place.port, candidate) }))
          .filter(({ port }) => port !== place.port && !avoid.has(port))
  const tryNext = (): void => {
    const candidate = queue.shift()
    if (candidate === undefined) return onDone(undefined)
    ask(place, candidate, server => (server === undefined ? tryNext() : onDone(server)))
  }
  tryNext()
}

function ask(
  { port: listenerPort, family, ipv6Only }: SharedPlace,
  { address, port }: { readonly address: string; readonly port: number },
  onDone: (server: SharedServer | undefined) => void,
): void {
  const askPrimary = primaryOfCluster()
  if (askPrimary === undefined) return onDone(undefined)
  const query = {
    address,
    port,
    addressType: family === UNIX ? NONE : family,
    // No descriptor, but a part of the primary's key: so this listener differs from one of the program on the same
    // port.
    fd: NO_DESCRIPTOR - listenerPort,
    flags: ipv6Only ? UV_TCP_IPV6ONLY : 0,
  }
  const mayLeave = delayDisconnect()
  // A dummy: with the server itself, the primary would emit 'listening' for a listener that is not the program's.
  askPrimary({ once: () => {} }, query, (errno, handle) => {
    mayLeave()
    if (errno !== 0 || handle === null) return onDone(undefined)
    const server = new net.Server() as SharedServer
    markOwn(server)
    server.on('error', () => {})
    server._handle = handle
    server._listen2(query.address, port, query.addressType, undefined, NONE, query.flags)
    server.unref()
    // If the kernel schedules, each worker calls listen(2) itself: the call may fail only now.
    onDone(server.listening ? server : undefined)
  })
}

let openQuestions = 0
let endDelay = (): void => {}

/**
 * A primary that answers a disconnected worker fails with EPIPE, because of a query that is not the program's. So
 * `process.disconnect` waits for the answer. The caller calls the returned function when the answer has come.
 */
function delayDisconnect(): () => void {
  if (openQuestions++ === 0) endDelay = replaceDisconnect()
  return () => {
    openQuestions--
    if (openQuestions === 0) endDelay()
  }
}

function replaceDisconnect(): () => void {
  const { disconnect } = process
  let isDue = false
  let isOver = false
  let timer: NodeJS.Timeout | undefined
  const release = (): void => {
    clearTimeout(timer)
    if (isOver) return
    isOver = true
    // The program may have wrapped `delayed`; the wrapper then still calls it.
    if (process.disconnect === delayed) process.disconnect = disconnect
    if (isDue && process.connected) disconnect.call(process)
  }
  const delayed = (): void => {
    if (isOver) return disconnect.call(process)
    isDue = true
    timer ??= setTimeout(release, DELAY_MS_MAX)
  }
  process.disconnect = delayed
  return release
}
