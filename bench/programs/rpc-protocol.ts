/** What both sides of `npm run bench:rpc` know. */
import { bytesCodec, defineService, method } from '../../am/rpc/index.ts'

export const ECHO = 1
export const ECHOED = 2

export interface Started {
  /** The endpoint's name, and the port of Connect over HTTP/2. */
  readonly name: string
  readonly port: number
}

export const benched = defineService({
  /** By `v8Codec`. */
  echo: method<unknown, unknown>(),
  bytes: method<Uint8Array, Uint8Array>({ input: bytesCodec, output: bytesCodec }),
  length: method<Uint8Array, number>(),
})

/** What Comlink exposes. */
export const calculator = { add: (a: number, b: number): number => a + b }
