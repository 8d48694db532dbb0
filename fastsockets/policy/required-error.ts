import type { Socket } from 'node:net'
import { shownText } from '../../nic/shown-text.ts'
import { reachableOwnAddress } from '../host/addresses.ts'
import { isListenedAt } from '../host/kernel-sockets.ts'
import { type FallbackCode, type FallbackReason, fallbackReason } from '../reasons.ts'

/** The connection or listener that must be fast, and the rule that says so. */
export interface Required {
  /** An address, a host name, or the path of a unix socket. */
  readonly address: string
  /** 0 for a unix socket. */
  readonly port: number
  /** `Decision.because`. */
  readonly because: string
}

const REMEDIES: Partial<Record<FallbackCode, string>> = {
  NOT_LISTENING: 'start the server',
  NOT_RELINKED: 'relink the server, with FASTSOCKETS_START=fast',
  OTHER_USER: 'list each user in the policy of the other',
  NO_RENDEZVOUS: 'give both the same rendezvous folder',
  REMOTE_HOST: 'name the host in a rule with an address, if it has RDMA',
}

/** The policy requires the fast way, which is not available. */
export class RequiredError extends Error {
  readonly code = 'ERR_FASTSOCKETS_REQUIRED'
  /** Why it is not available. */
  readonly reason: FallbackReason
  readonly address: string
  readonly port: number
  /** The rule that requires it, with its file and line. */
  readonly rule: string

  constructor(reason: FallbackReason, { address, port, because }: Required, cause?: Error) {
    const { [reason.code]: remedy } = REMEDIES
    super(
      `the policy requires the fast way for ${placeOf(address, port)} (${because}): ` +
        `${reason.code}: ${reason.text}${remedy === undefined ? '' : `: ${remedy}`}`,
      cause && { cause },
    )
    this.name = 'RequiredError'
    this.reason = reason
    this.address = address
    this.port = port
    this.rule = because
  }
}

function placeOf(address: string, port: number): string {
  if (port === 0) return shownText(address)
  return shownText(address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`)
}

/** Tells a port at which no process listens from one whose process is not relinked. Reads the kernel's table of sockets. */
export function preciseReason(reason: FallbackReason, address: string, port: number): FallbackReason {
  if (reason.code !== 'NOT_RELINKED') return reason
  const own = reachableOwnAddress(address)
  const isListened = own === undefined ? undefined : isListenedAt(own, port)
  if (isListened === undefined) return reason
  return isListened
    ? fallbackReason(
        'NOT_RELINKED',
        'a process listens there, which is not relinked, has just started, or has loaded nothing yet',
      )
    : fallbackReason('NOT_LISTENING', 'no process of this network namespace listens there')
}

/**
 * If the connect under way fails, the program receives a `RequiredError`. Node makes an error of its own from all
 * addresses that it has tried, and destroys the socket with it: that error becomes the cause.
 */
export function explainFailure(socket: Socket, reason: FallbackReason, required: Required): void {
  Object.defineProperty(socket, 'destroy', {
    configurable: true,
    writable: true,
    value(this: Socket, error?: Error): Socket {
      Reflect.deleteProperty(socket, 'destroy')
      return socket.destroy(isOfConnect(error) ? new RequiredError(reason, required, error) : error)
    },
  })
}

function isOfConnect(error: unknown): error is Error {
  return (
    error instanceof AggregateError || (error as NodeJS.ErrnoException | undefined)?.syscall === 'connect'
  )
}

/** Undoes `explainFailure`: a later address was reached. */
export function forgetFailure(socket: Socket): void {
  if (Object.hasOwn(socket, 'destroy')) Reflect.deleteProperty(socket, 'destroy')
}
