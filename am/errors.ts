import { NicError } from '../nic/index.ts'
import type { UndeliverableReason } from './undeliverable.ts'

/** Stable codes of all errors that this layer makes. */
export type AmErrorCode =
  /** An invalid argument: a handler index, a word, a length. A `TypeError` or `RangeError`. */
  | 'ERR_AM_ARGUMENT'
  /** A handler replied twice, replied to a reply, or used a message after its handler had returned. */
  | 'ERR_AM_TOKEN'
  /** A handler tried to send by other means than a reply. */
  | 'ERR_AM_HANDLER_RULE'
  /** The peer broke the protocol of this layer or of the one below; `cause` says how. */
  | 'ERR_AM_PROTOCOL_VIOLATION'
  /** The connection is lost: the peer's process has ended, or its host or the network to it has failed. */
  | 'ERR_AM_PEER_LOST'
  /** The endpoint or channel is closed. A `TypeError`. */
  | 'ERR_AM_CLOSED'
  /** The destination is not mapped. A `RangeError`. */
  | 'ERR_AM_NOT_MAPPED'
  /** The program has set a handler at the index that a stream needs; or RPC has that index to itself. */
  | 'ERR_AM_HANDLER_TAKEN'
  /** No endpoint answers to that name: it is closed, its process has ended, or it never existed. */
  | 'ERR_AM_NO_SUCH_ENDPOINT'
  /** No driver reaches the endpoint, or this process may not connect to it, or cannot connect now. */
  | 'ERR_AM_UNREACHABLE'
  /** A published name was looked up, and the name service cannot be reached. */
  | 'ERR_AM_NO_NAME_SERVICE'
  /** A living endpoint has published that name. */
  | 'ERR_AM_NAME_HELD'
  /** The name service refused the name; `cause` says why. */
  | 'ERR_AM_NAME_REFUSED'
  /** A call came back; `reason` says why. */
  | 'ERR_AM_UNDELIVERABLE'
  /** The handler of a call returned without a reply. */
  | 'ERR_AM_NO_REPLY'
  /** The awaited event did not happen in time. */
  | 'ERR_AM_TIMEOUT'

export class AmError extends Error {
  readonly code: AmErrorCode
  /** Why a call came back. */
  readonly reason: UndeliverableReason | undefined

  constructor(
    code: AmErrorCode,
    message: string,
    options: ErrorOptions & { reason?: UndeliverableReason } = {},
  ) {
    super(message, options)
    this.name = 'AmError'
    this.code = code
    this.reason = options.reason
  }
}

/** An argument of the right type with an invalid value. */
export function rangeError(message: string, code: AmErrorCode = 'ERR_AM_ARGUMENT'): RangeError {
  return Object.assign(new RangeError(message), { code })
}

export function typeError(message: string, code: AmErrorCode = 'ERR_AM_ARGUMENT'): TypeError {
  return Object.assign(new TypeError(message), { code })
}

export function closedError(): TypeError {
  return typeError('the endpoint is closed', 'ERR_AM_CLOSED')
}

const LOST: readonly string[] = ['ERR_NIC_PEER_LOST', 'ERR_NIC_PEER_RESET']

/** The error that a channel's owner receives when the peer broke the protocol or is lost. */
export function violationOf(cause: Error | undefined): AmError {
  if (cause instanceof NicError && LOST.includes(cause.code))
    return new AmError('ERR_AM_PEER_LOST', cause.message, { cause })
  const message = `the peer broke the protocol: ${cause?.message ?? 'unknown'}`
  return new AmError('ERR_AM_PROTOCOL_VIOLATION', message, { cause })
}
