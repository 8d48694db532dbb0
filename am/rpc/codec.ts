/** How values become bytes. A codec of the user's own library is two functions. */
import { deserialize, serialize } from 'node:v8'

export interface Codec<T = unknown> {
  /** Both sides must use codecs of the same name. */
  readonly name: string
  /** The bytes belong to the call until it has settled: they may be the value's own. */
  encode(value: T): Uint8Array
  /** The bytes belong to the value from now on. */
  decode(bytes: Uint8Array): T
}

const EMPTY = new Uint8Array(0)
/** First byte of a Uint8Array or a Buffer, whose bytes follow. What `v8.serialize` writes begins with 0xff. */
const BYTES = 1
const BUFFER = 2
/** Longer arrays are views of the message. */
const COPIED_MAX = 4096

/**
 * The structured clone algorithm as `v8.serialize` has it: Map, Set, Date, BigInt, typed arrays, circles. `undefined` is no
 * bytes. Data of a stranger is safe to read, but only peers of compatible V8 versions understand each other.
 */
export const v8Codec: Codec = {
  name: 'v8',
  encode: value => {
    if (value === undefined) return EMPTY
    return value instanceof Uint8Array ? encodeBytes(value) : serialize(value)
  },
  decode: bytes => {
    if (bytes.length === 0) return undefined
    return (bytes[0] as number) <= BUFFER ? decodeBytes(bytes) : deserialize(bytes)
  },
}

function encodeBytes(value: Uint8Array): Uint8Array {
  const bytes = Buffer.allocUnsafe(1 + value.length)
  bytes[0] = Buffer.isBuffer(value) ? BUFFER : BYTES
  bytes.set(value, 1)
  return bytes
}

function decodeBytes(bytes: Uint8Array): Uint8Array {
  const view = new Uint8Array(bytes.buffer, bytes.byteOffset + 1, bytes.length - 1)
  if (bytes[0] === BUFFER) return Buffer.from(view.buffer, view.byteOffset, view.length)
  return view.length > COPIED_MAX ? view : view.slice()
}

export const jsonCodec: Codec = {
  name: 'json',
  encode: value => (value === undefined ? EMPTY : Buffer.from(JSON.stringify(value))),
  decode: bytes =>
    bytes.length === 0
      ? undefined
      : JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()),
}

/** Bytes as they are: nothing is encoded. */
export const bytesCodec: Codec<Uint8Array> = {
  name: 'bytes',
  encode: value => value,
  decode: bytes => bytes,
}
