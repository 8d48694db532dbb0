/** Errors of RPC, and how an error of a handler travels to its caller. */
import { CAUSES_MAX, DETAILS_MAX, ERROR_TEXT_MAX } from './rpc-layout.ts'

/** Codes of the errors that this folder makes. A handler's own error keeps its own code. */
export type RpcErrorCode =
  /** The peer is gone, or was never there; `reason` says why. The handler may have run. */
  | 'ERR_RPC_UNAVAILABLE'
  /** The time of the call is over. */
  | 'ERR_RPC_DEADLINE'
  /** The other side has cancelled the call. */
  | 'ERR_RPC_CANCELLED'
  /** The peer has no such service or method, or serves nothing. */
  | 'ERR_RPC_UNIMPLEMENTED'
  /** A limit of the link is reached: calls, bytes that wait, or items of an Observable that wait. */
  | 'ERR_RPC_EXHAUSTED'
  /** A payload is longer than `MESSAGE_BYTES_MAX`, or cannot be encoded or decoded. */
  | 'ERR_RPC_PAYLOAD'
  /** The handler threw something without a code. */
  | 'ERR_RPC_HANDLER'
  /** The peer does not keep to the protocol. */
  | 'ERR_RPC_PROTOCOL'
  /** An argument of the program's own is wrong. */
  | 'ERR_RPC_ARGUMENT'
  /** The endpoint serves a service of that name already, or its program has set handler 255. */
  | 'ERR_RPC_TAKEN'

export class RpcError extends Error {
  /** One of `RpcErrorCode`, or the code of the handler's error. */
  readonly code: string
  /** Of `ERR_RPC_UNAVAILABLE`: why, for example `PEER_DEAD`. */
  readonly reason: string | undefined
  /** The handler's error has this name; undefined for an error made on this side. */
  readonly remoteName: string | undefined
  /** What the handler's error has as `details`; must survive JSON. */
  readonly details: unknown

  constructor(
    code: string,
    message: string,
    options: ErrorOptions & { reason?: string; remoteName?: string; details?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'RpcError'
    this.code = code
    this.reason = options.reason
    this.remoteName = options.remoteName
    this.details = options.details
  }
}

export function rpcError(
  code: RpcErrorCode,
  message: string,
  options?: ConstructorParameters<typeof RpcError>[2],
): RpcError {
  return new RpcError(code, message, options)
}

interface WireError {
  readonly name: string
  readonly code: string
  readonly message: string
  readonly cause?: WireError
  readonly details?: unknown
}

const decoder = new TextDecoder()

export function encodeError(error: unknown): Uint8Array {
  const wire = toWire(error, CAUSES_MAX)
  try {
    const text = JSON.stringify(wire)
    if (text.length <= DETAILS_MAX) return Buffer.from(text)
  } catch {
    // Details that JSON does not know.
  }
  return Buffer.from(JSON.stringify(withoutDetails(wire)))
}

function withoutDetails({ details: _, cause, ...rest }: WireError): WireError {
  return { ...rest, ...(cause !== undefined && { cause: withoutDetails(cause) }) }
}

/** Of a stranger: every part is checked. */
export function decodeError(bytes: Uint8Array): RpcError {
  try {
    return fromWire(JSON.parse(decoder.decode(bytes)), CAUSES_MAX)
  } catch (cause) {
    return rpcError('ERR_RPC_PROTOCOL', 'the peer answered with an error that cannot be read', { cause })
  }
}

function toWire(error: unknown, causes: number): WireError {
  if (!(error instanceof Error)) {
    return { name: 'Error', code: 'ERR_RPC_HANDLER', message: cut(String(error)) }
  }
  const { code, cause, details } = error as Error & { code?: unknown; details?: unknown }
  return {
    name: cut(error.name),
    code: typeof code === 'string' ? cut(code) : 'ERR_RPC_HANDLER',
    message: cut(error.message),
    ...(cause !== undefined && causes > 0 && { cause: toWire(cause, causes - 1) }),
    ...(details !== undefined && { details }),
  }
}

function fromWire(wire: Partial<WireError>, causes: number): RpcError {
  const text = (value: unknown, other: string): string => (typeof value === 'string' ? cut(value) : other)
  const { cause } = wire
  return new RpcError(text(wire.code, 'ERR_RPC_HANDLER'), text(wire.message, ''), {
    remoteName: text(wire.name, 'Error'),
    details: wire.details,
    ...(typeof cause === 'object' && cause !== null && causes > 0 && { cause: fromWire(cause, causes - 1) }),
  })
}

function cut(text: string): string {
  return text.length <= ERROR_TEXT_MAX ? text : text.slice(0, ERROR_TEXT_MAX)
}
