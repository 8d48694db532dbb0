/** Applies the policy to a listener, and to a connect that cannot be fast. */
import { isIP, type Server, type Socket } from 'node:net'
import { openLog } from '../../nic/index.ts'
import { performance } from '../../nic/performance.ts'
import { nextTick } from '../../nic/real-time.ts'
import { fastOf } from '../handle/fast-handle.ts'
import type { ConnectedTcp, FourAddresses } from '../handle/tcp-below.ts'
import { decide, decidePath, ownPolicy } from '../policy/own-policy.ts'
import { type Decision, NO_POLICY } from '../policy/policy.ts'
import { preciseReason, RequiredError } from '../policy/required-error.ts'
import { hold } from '../promotion/held-connections.ts'
import type { FallbackReason } from '../reasons.ts'
import { EVENTS, publishEvent } from '../status/events.ts'
import { countRefused, type FastServer } from './listeners.ts'

const log = openLog('fastsockets:policy')
const NO_RULE: Decision = { use: 'fast', because: 'it has no address', rule: 0, isForAddress: false }

export function decideListener(server: Server): Decision {
  const name = server.address()
  if (name === null) return NO_RULE
  if (typeof name === 'string') return decidePath('server', name)
  return decide('server', name.address, name.port)
}

/**
 * The error of a connect that the policy requires to be fast and that cannot be. If rules name addresses and `host` is
 * a name, the socket is destroyed with the error once the name is resolved.
 */
export function refuseIfRequired(
  socket: Socket,
  host: string,
  port: number,
  reason: FallbackReason,
): RequiredError | undefined {
  if (ownPolicy() === NO_POLICY) return undefined
  const address = isIP(host) === 0 ? undefined : host
  if (address !== undefined || ownPolicy()?.hasAddresses !== true) {
    const { use, because } = decide('client', address, port)
    if (use !== 'require') return undefined
    return new RequiredError(preciseReason(reason, host, port), { address: host, port, because })
  }
  if (!unresolved.has(socket)) socket.prependListener('lookup', judgeAddress)
  unresolved.set(socket, { port, reason })
  return undefined
}

/** Whether the policy says, or may say once the name is resolved, that a connect must be fast, or must not be. */
export function mayBeDecided(host: string, port: number): boolean {
  const own = ownPolicy()
  if (own === NO_POLICY) return false
  const address = isIP(host) === 0 ? undefined : host
  return (
    (address === undefined && own?.hasAddresses === true) || decide('client', address, port).use !== 'fast'
  )
}

interface Unresolved {
  readonly port: number
  readonly reason: FallbackReason
}

/** Sockets whose connect waits for its addresses, to be judged then. */
const unresolved = new WeakMap<Socket, Unresolved>()

/** A listener of 'lookup'. Node emits the event for every address, all in one go, before it connects to any. */
function judgeAddress(this: Socket, _error: Error | null, address: string | undefined): void {
  const connect = unresolved.get(this)
  if (connect === undefined) return
  nextTick(() => {
    if (unresolved.get(this) !== connect) return
    unresolved.delete(this)
    this.off('lookup', judgeAddress)
  })
  if (address === undefined) return
  const { port, reason } = connect
  const { use, because } = decide('client', address, port)
  if (use === 'require')
    this.destroy(new RequiredError(preciseReason(reason, address, port), { address, port, because }))
}

/** Handles of listeners that hold connections while the policy requires it. */
const holding = new WeakSet<object>()

/**
 * The policy requires the fast way, and the listener has it: connections over TCP wait until their clients move them
 * (held-connections.ts). Those over a unix path are
 * closed.
 */
export function holdTcpClients(server: FastServer): void {
  const shadow = server._handle
  const accept = shadow?.onconnection
  if (shadow === null || typeof accept !== 'function') return
  if (holding.has(shadow)) return
  holding.add(shadow)
  shadow.onconnection = function (this: unknown, status: number, client?: object): void {
    const isHeld = status === 0 && fastOf(client) === undefined && decideListener(server).use === 'require'
    if (isHeld) hold(client as ConnectedTcp, server, ends => noteRefused(server, ends))
    else accept.call(shadow, status, client as object)
  }
}

/** Most lines of the log about refused clients. */
const LOG_EVERY_MS = 1000
let loggedMs = Number.NEGATIVE_INFINITY
let unloggedCount = 0

function noteRefused(server: Server, { client, server: local }: FourAddresses): void {
  const { because } = decideListener(server)
  countRefused(server)
  publishEvent(EVENTS.refused, { local, remote: client, because })
  unloggedCount++
  const nowMs = performance.now()
  if (nowMs < loggedMs + LOG_EVERY_MS) return
  log(
    '%s port %d: reset %d clients over TCP, the last from %s port %d: %s',
    local.address,
    local.port,
    unloggedCount,
    client.address,
    client.port,
    because,
  )
  loggedMs = nowMs
  unloggedCount = 0
}

/** The policy requires the fast way, and the listener cannot have it: closes the server with an error. */
export function failListening(server: Server, reason: FallbackReason): void {
  const { because } = decideListener(server)
  const name = server.address()
  const { address, port } =
    name === null || typeof name === 'string' ? { address: name ?? '', port: 0 } : name
  server.close()
  nextTick(() => server.emit('error', new RequiredError(reason, { address, port, because })))
}
