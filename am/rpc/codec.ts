/** How values become bytes. A codec of the user's own library is two functions. */
import { deserialize, serialize } from 'node:v8'
import { FLAG_BUFFER, FLAG_BYTES } from './rpc-layout.ts'

export interface Codec<T = unknown> {
  /** Both sides must use codecs of the same name. */
  readonly name: string
  /** The bytes belong to the call until it has settled. */
  encode(value: T): Uint8Array
  /** The bytes belong to the value from now on. */
  decode(bytes: Uint8Array): T
}

const EMPTY = new Uint8Array(0)
/** Longer arrays are views of the message. */
const COPIED_MAX = 4096

/**
 * The structured clone algorithm as `v8.serialize` has it: Map, Set, Date, BigInt, typed arrays, circles. `undefined` is no
 * bytes. Data of a stranger is safe to read, but only peers of compatible V8 versions understand each other.
 */
export const v8Codec: Codec = {
  name: 'v8',
  encode: value => (value === undefined ? EMPTY : serialize(value)),
  decode: bytes => (bytes.length === 0 ? undefined : deserialize(bytes)),
}

/** FLAG_BYTES or FLAG_BUFFER for bytes that travel as they are, from the program's own memory; else 0. */
export function rawFlag(codec: Codec, value: unknown): number {
  if ((codec !== v8Codec && codec !== bytesCodec) || !(value instanceof Uint8Array)) return 0
  return codec === v8Codec && Buffer.isBuffer(value) ? FLAG_BUFFER : FLAG_BYTES
}

/** `flag`: of `rawFlag`. */
export function encodeWith(codec: Codec, value: unknown, flag: number): Uint8Array {
  return flag === 0 ? codec.encode(value) : (value as Uint8Array)
}

/** `flags`: those of the item. */
export function decodeWith(codec: Codec, bytes: Buffer, flags: number): unknown {
  if (codec !== v8Codec || (flags & (FLAG_BYTES | FLAG_BUFFER)) === 0) return codec.decode(bytes)
  if ((flags & FLAG_BUFFER) !== 0) return bytes
  return bytes.length > COPIED_MAX
    ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length)
    : new Uint8Array(bytes)
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
