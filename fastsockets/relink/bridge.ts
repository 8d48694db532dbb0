/**
 * A fast socket has no descriptor that another process could be given, unless it is back on the TCP connection below it (demotion).
 * A bridge puts one under it: the socket gets one end of a unix socket pair for its handle, and this process carries bytes between the
 * other end and the fast stream, for as long as the connection lasts.
 *
 *   peer  ~~ shared memory ~~  relay == near end  ~~ kernel ~~  far end: the socket here, and the process that receives it
 */
import net from 'node:net'
import { markOwn, socketPair } from '../../nic/index.ts'
import { fastOf } from '../handle/fast-handle.ts'
import type { FastHandle, FastSocket } from '../handle/fast-handle-contract.ts'
import { type HandleExchange, keepStreamState } from '../handle/tls-sockets.ts'
import { recordFast } from '../handle/transport.ts'
import {
  type NodeInternals,
  nodeInternals,
  type PipeHandle,
  type SocketName,
} from '../host/node-internals.ts'
import { promotedOf } from '../promotion/find-promoted.ts'
import { type EndNames, encodeNames, setNames } from './bridge-names.ts'

/** The socket cannot be sent to another process; it is unchanged. */
export class SendError extends Error {
  readonly code = 'ERR_FASTSOCKETS_SEND'

  constructor(cause: Error) {
    super(`this fast socket cannot be sent, ${cause.message}; a policy can keep its port on TCP`, { cause })
    this.name = 'SendError'
  }
}

export function isFastSocket(value: unknown): value is FastSocket {
  return value instanceof net.Socket && fastOf((value as { _handle?: unknown })._handle) !== undefined
}

/** Gives a connected fast socket a handle that can be sent to another process; changes nothing if it throws. */
export function bridgeOrFail(socket: FastSocket, exchange: HandleExchange): void {
  try {
    bridge(socket, exchange)
  } catch (error) {
    throw new SendError(error as Error)
  }
}

function bridge(socket: FastSocket, exchange: HandleExchange): void {
  const fast = fastOf(socket._handle) as FastHandle
  if (promotedOf(socket._handle)?.tryHandBack() === true) return
  if (fast.isClosed || (fast.stream === undefined && !fast.isOnTcp) || socket.connecting)
    throw new Error('the socket is not connected')
  const names = namesOf(fast.handle as PipeHandle)
  const { near: nearFd, far: farFd } = socketPair(names === undefined ? '' : encodeNames(names))
  const far = (nodeInternals() as NodeInternals).createPipe()
  far.open(farFd)
  if (names !== undefined) setNames(far, names)
  const near = new net.Socket({ fd: nearFd, readable: true, writable: true, allowHalfOpen: true })
  markOwn(near)
  const hasEnded = socket._readableState.ended
  if (fast.stream !== undefined) recordFast(socket, fast.stream.channel.transport)
  // `exchange` closes the handle that the socket holds: the fast handle must stay open.
  socket._handle = null
  keepStreamState(socket, () => exchange(socket, far))
  relay(fast, near, hasEnded)
}

/** Undefined on a unix path. */
function namesOf(handle: PipeHandle): EndNames | undefined {
  const local: SocketName = {}
  const remote: SocketName = {}
  handle.getsockname?.(local)
  handle.getpeername?.(remote)
  return local.address === undefined ? undefined : { local, remote }
}

/**
 * Relays the bytes of `fast` from here on, without the program. Keeps this process alive, as the bytes pass through it.
 */
function relay(fast: FastHandle, near: net.Socket, hasEnded: boolean): void {
  const inner = new net.Socket({
    handle: fast.handle,
    allowHalfOpen: true,
    readable: !hasEnded,
    writable: true,
  } as never) as FastSocket
  fast.socket = inner
  inner.ref()
  inner.on('error', () => near.destroy())
  near.on('error', () => inner._reset())
  near.pipe(inner)
  if (hasEnded) near.end()
  else inner.pipe(near)
}
