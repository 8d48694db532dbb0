/** The service of the tests, which both sides import. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { decode, encode } from '@msgpack/msgpack'
import { bytesCodec, type Codec, defineService, jsonCodec, method, stream } from '../../../am/rpc/index.ts'
import { type Text, TextSchema } from '../../../bench/programs/echo_pb.ts'

/** A codec of another library: two functions. */
export const messagePack: Codec = {
  name: 'messagepack',
  encode: value => encode(value),
  decode: bytes => decode(bytes),
}

/** Messages of a .proto file, in protobuf's binary format. */
export const protobuf: Codec<Text> = {
  name: TextSchema.typeName,
  encode: value => toBinary(TextSchema, value),
  decode: bytes => fromBinary(TextSchema, bytes),
}

export const textOf = (text: string): Text =>
  create(TextSchema, { text, count: 3, data: new Uint8Array(100) })

export interface Job {
  readonly text: string
  readonly copies?: number
  readonly at?: Date
}

export const printer = defineService({
  print: method<Job, { pages: number; job: Job }>(),
  echo: method<unknown, unknown>(),
  json: method<unknown, unknown>({ input: jsonCodec, output: jsonCodec }),
  packed: method<unknown, unknown>({ input: messagePack, output: messagePack }),
  text: method<Text, Text>({ input: protobuf, output: protobuf }),
  bytes: method<Uint8Array, Uint8Array>({ input: bytesCodec, output: bytesCodec }),
  fail: method<string, never>(),
  /** Resolves when it is cancelled, never before. */
  hang: method<void, void>(),
  /** How many calls of `hang` have been cancelled, and with which codes. */
  cancelled: method<void, string[]>(),
  nothing: method(),
  /** Calls the caller's endpoint back. */
  count: stream<number, number>(),
  observed: stream<number, number>(),
  /** Items of so many bytes; `produced` says how many have been made. */
  flood: stream<{ items: number; bytes: number }, Uint8Array>({ output: bytesCodec }),
  produced: method<void, number>(),
  breaks: stream<void, number>(),
  pid: method<void, number>(),
})
