import { NicError } from '../nic/index.ts'
import type { UndeliverableReason } from './undeliverable.ts'

/** Every error that this layer makes, by its stable code. */
export type AmErrorCode =
  /** An argument that can never be right: a handler index, a word, a length. A `TypeError` or `RangeError`. */
  | 'ERR_AM_ARGUMENT'
  /** A handler replied twice, replied to a reply, or used a message after its handler had returned. */
  | 'ERR_AM_TOKEN'
  /** A handler tried to send by other means than a reply. */
  | 'ERR_AM_HANDLER_RULE'
  /** The peer broke the protocol of this layer or of the one below; `cause` says how. */
  | 'ERR_AM_PROTOCOL_VIOLATION'
  /** The peer's device acknowledges nothing any more: its host, or the way to it, has failed. */
  | 'ERR_AM_PEER_LOST'
  /** The endpoint or channel is closed. A `TypeError`. */
  | 'ERR_AM_CLOSED'
  /** The destination is not mapped. A `RangeError`. */
  | 'ERR_AM_NOT_MAPPED'
  /** A handler is there already for messages that a stream is to take. */
  | 'ERR_AM_HANDLER_TAKEN'
  /** No endpoint answers to that name: it is closed, its process is gone, or it was never there. */
  | 'ERR_AM_NO_SUCH_ENDPOINT'
  /** The endpoint lives where none of the drivers reaches, or this process may not connect to it, or cannot now. */
  | 'ERR_AM_UNREACHABLE'
  /** A published name was to be found, and the name service cannot be asked. */
  | 'ERR_AM_NO_NAME_SERVICE'
  /** A living endpoint has published that name. */
  | 'ERR_AM_NAME_HELD'
  /** The name service does not want the name; `cause` says why. */
  | 'ERR_AM_NAME_REFUSED'
  /** A call came back; `reason` says why. */
  | 'ERR_AM_UNDELIVERABLE'
  /** The handler of a call returned without a reply. */
  | 'ERR_AM_NO_REPLY'
  /** What was waited for did not happen in time. */
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

/** What is right by its type and wrong by its value. */
export function rangeError(message: string, code: AmErrorCode = 'ERR_AM_ARGUMENT'): RangeError {
  return Object.assign(new RangeError(message), { code })
}

export function typeError(message: string, code: AmErrorCode = 'ERR_AM_ARGUMENT'): TypeError {
  return Object.assign(new TypeError(message), { code })
}

export function closedError(): TypeError {
  return typeError('the endpoint is closed', 'ERR_AM_CLOSED')
}

/** A channel ended by what its peer did: what its owner is told. */
export function violationOf(cause: Error | undefined): AmError {
  if (cause instanceof NicError && cause.code === 'ERR_NIC_PEER_LOST')
    return new AmError('ERR_AM_PEER_LOST', cause.message, { cause })
  const message = `the peer broke the protocol: ${cause?.message ?? 'unknown'}`
  return new AmError('ERR_AM_PROTOCOL_VIOLATION', message, { cause })
}
