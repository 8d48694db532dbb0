/** How values become bytes. A codec of the user's own library is two functions. */
import { deserialize, serialize } from 'node:v8'
import { FLAG_BUFFER, FLAG_BYTES, FLAG_TEXT } from './rpc-layout.ts'

export interface Codec<T = unknown> {
  /** Both sides must use codecs of the same name. */
  readonly name: string
  /** The bytes belong to the call until it has settled. */
  encode(value: T): Uint8Array
  /** The bytes belong to the value from now on. */
  decode(bytes: Uint8Array): T
}

const EMPTY = new Uint8Array(0)

/**
 * The structured clone algorithm as `v8.serialize` has it: Map, Set, Date, BigInt, typed arrays, circles. `undefined` is no
 * bytes. Data of a stranger is safe to read, but only peers of compatible V8 versions understand each other.
 */
export const v8Codec: Codec = {
  name: 'v8',
  encode: value => (value === undefined ? EMPTY : serialize(value)),
  decode: bytes => (bytes.length === 0 ? undefined : deserialize(bytes)),
}

/**
 * The form of a value that travels without an encoding: bytes from the program's own memory, and strings, for which a serializer
 * costs more than the message. 0 for other values.
 */
export function formOf(codec: Codec, value: unknown): number {
  if (codec === bytesCodec) return value instanceof Uint8Array ? FLAG_BUFFER : 0
  if (codec !== v8Codec) return 0
  if (typeof value === 'string') return value.isWellFormed() ? FLAG_TEXT : 0
  if (!(value instanceof Uint8Array)) return 0
  return Buffer.isBuffer(value) ? FLAG_BUFFER : FLAG_BYTES
}

/** `form`: of `formOf`. */
export function encodeWith(codec: Codec, value: unknown, form: number): Uint8Array {
  if (form === 0) return codec.encode(value)
  return form === FLAG_TEXT ? Buffer.from(value as string) : (value as Uint8Array)
}

/** `flags`: those of the item. */
export function decodeWith(codec: Codec, bytes: Uint8Array, flags: number): unknown {
  if (codec === v8Codec) {
    if ((flags & FLAG_BYTES) !== 0) return bytes
    if ((flags & FLAG_BUFFER) !== 0) return asBuffer(bytes)
    if ((flags & FLAG_TEXT) !== 0) return asBuffer(bytes).toString()
  }
  return codec.decode(bytes)
}

/** A view of the same memory. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}

export const jsonCodec: Codec = {
  name: 'json',
  encode: value => (value === undefined ? EMPTY : Buffer.from(JSON.stringify(value))),
  decode: bytes => (bytes.length === 0 ? undefined : JSON.parse(asBuffer(bytes).toString())),
}

/** Bytes as they are: nothing is encoded. */
export const bytesCodec: Codec<Uint8Array> = {
  name: 'bytes',
  encode: value => value,
  decode: asBuffer,
}
