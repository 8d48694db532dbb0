/**
 * What Connect's calls carry on a link. OPEN of every call and the result of a unary call are
 *
 *   +0  u32, little-endian: length h of the head
 *   +4  h bytes of JSON: { h: [[name, value]...], t: [[name, value]...] }: headers, trailers; h is 0 if there are none
 *       then the message in protobuf's binary format; an OPEN of a stream has none
 *
 * A stream of results begins with such a frame without a message and ends with one: its last item. Between them, and in a stream of
 * arguments, an item is one message. Errors carry Connect's JSON of an error, and its metadata, as `details`.
 */
import { Code, ConnectError } from '@connectrpc/connect'
import { errorFromJson, errorToJson } from '@connectrpc/connect/protocol-connect'
import { asBuffer } from '../codec.ts'
import { RpcError } from '../rpc-error.ts'

const LENGTH_SIZE = 4
const NO_BYTES = new Uint8Array(0)
const decoder = new TextDecoder()

export interface Head {
  readonly header: Headers
  readonly trailer: Headers
}

type Pairs = [string, string][]

export function encodeFrame(
  header: Headers,
  trailer: Headers | undefined,
  message: Uint8Array = NO_BYTES,
): Buffer {
  const [h, t] = [[...header], trailer === undefined ? [] : [...trailer]]
  const head = h.length + t.length === 0 ? NO_BYTES : Buffer.from(JSON.stringify({ h, t }))
  const frame = Buffer.allocUnsafe(LENGTH_SIZE + head.length + message.length)
  frame.writeUInt32LE(head.length, 0)
  frame.set(head, LENGTH_SIZE)
  frame.set(message, LENGTH_SIZE + head.length)
  return frame
}

/** Of a stranger: throws a ConnectError if the bytes are no frame. */
export function decodeFrame(received: Uint8Array): Head & { readonly message: Uint8Array } {
  const bytes = asBuffer(received)
  const length = bytes.length < LENGTH_SIZE ? bytes.length : bytes.readUInt32LE(0)
  const end = LENGTH_SIZE + length
  if (end > bytes.length) throw new ConnectError('the peer sent a frame that cannot be read', Code.Internal)
  const message = bytes.subarray(end)
  if (length === 0) return { header: new Headers(), trailer: new Headers(), message }
  try {
    const { h, t } = JSON.parse(decoder.decode(bytes.subarray(LENGTH_SIZE, end))) as { h: Pairs; t: Pairs }
    return { header: new Headers(h), trailer: new Headers(t), message }
  } catch (cause) {
    throw new ConnectError(
      'the peer sent headers that cannot be read',
      Code.Internal,
      undefined,
      undefined,
      cause,
    )
  }
}

/** As Connect's handlers do: what is no ConnectError is not shown to the caller. */
export function toWireError(reason: unknown, { header, trailer }: Head): Error {
  const error =
    reason instanceof ConnectError
      ? reason
      : new ConnectError('internal error', Code.Internal, undefined, undefined, reason)
  const metadata = new Headers(header)
  for (const headers of [trailer, error.metadata])
    for (const [name, value] of headers) metadata.append(name, value)
  return Object.assign(new Error(error.rawMessage), {
    code: 'CONNECT',
    details: { error: errorToJson(error, undefined), metadata: [...metadata] },
  })
}

const CODES: Readonly<Record<string, Code>> = {
  ERR_RPC_UNAVAILABLE: Code.Unavailable,
  ERR_RPC_DEADLINE: Code.DeadlineExceeded,
  ERR_RPC_CANCELLED: Code.Canceled,
  ERR_RPC_UNIMPLEMENTED: Code.Unimplemented,
  ERR_RPC_EXHAUSTED: Code.ResourceExhausted,
  ERR_RPC_PAYLOAD: Code.ResourceExhausted,
}

/** The error that Connect's users expect for one of the link. */
export function toConnectError(error: unknown): unknown {
  if (!(error instanceof RpcError)) return error
  const fallback = new ConnectError(
    error.message,
    CODES[error.code] ?? Code.Internal,
    undefined,
    undefined,
    error,
  )
  if (error.code !== 'CONNECT') return fallback
  try {
    const { error: json, metadata } = error.details as { error: never; metadata: Pairs }
    return errorFromJson(json, new Headers(metadata), fallback)
  } catch {
    return fallback
  }
}
