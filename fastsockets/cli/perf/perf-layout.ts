// The protocol of `fastsockets perf` and its server, on an ordinary connection. All numbers are little-endian.
//
//   server   HELLO    u32 magic   u8 version   u8 transport   10 bytes 0     as soon as it has accepted
//   client   ASK      u32 magic   u8 version   u8 test        u8 flags   9 bytes 0
//   client   bytes of the test
//   server   ping-pong: the same bytes; throughput: after the client's end
//            TOTAL    u64 bytes   u64 nanoseconds from the ASK to the end
//
// A client of the test `connect` sends nothing, and closes after the HELLO.

export const PERF_MAGIC = 0x46505346
export const PERF_VERSION = 2
/** HELLO, ASK and TOTAL. */
export const PERF_MESSAGE_SIZE = 16
const VERSION_OFFSET = 4
const TRANSPORT_OFFSET = 5
const TEST_OFFSET = 5
const FLAGS_OFFSET = 6
const BYTES_OFFSET = 0
const NANOSECONDS_OFFSET = 8
/** The server polls in a loop as long as the test lasts. */
const FLAG_POLL = 1

/** The kind of sockets of a program: raw, or those of `node:net`. */
export const TRANSPORTS = ['raw', 'net'] as const
export type PerfTransport = (typeof TRANSPORTS)[number]

/** The tests that need the server; index 0 is no test. */
const TESTS = [undefined, 'ping-pong', 'throughput'] as const
export type AskedTest = 'ping-pong' | 'throughput'

export interface Ask {
  readonly test: AskedTest
  readonly isPolling: boolean
}

export interface Total {
  readonly bytes: number
  readonly seconds: number
}

export function encodeHello(transport: PerfTransport): Buffer {
  const hello = message()
  hello.writeUInt8(1 + TRANSPORTS.indexOf(transport), TRANSPORT_OFFSET)
  return hello
}

/** Undefined if it is not ours. */
export function decodeHello(bytes: Buffer): PerfTransport | undefined {
  return isOurs(bytes) ? TRANSPORTS[bytes.readUInt8(TRANSPORT_OFFSET) - 1] : undefined
}

export function encodeAsk({ test, isPolling }: Ask): Buffer {
  const ask = message()
  ask.writeUInt8(TESTS.indexOf(test), TEST_OFFSET)
  ask.writeUInt8(isPolling ? FLAG_POLL : 0, FLAGS_OFFSET)
  return ask
}

/** Undefined if it is not ours. */
export function decodeAsk(bytes: Buffer): Ask | undefined {
  if (!isOurs(bytes)) return undefined
  const test = TESTS[bytes.readUInt8(TEST_OFFSET)]
  const flags = bytes.readUInt8(FLAGS_OFFSET)
  if (test === undefined || (flags & ~FLAG_POLL) !== 0) return undefined
  return { test, isPolling: flags === FLAG_POLL }
}

export function encodeTotal({ bytes, seconds }: Total): Buffer {
  const total = Buffer.alloc(PERF_MESSAGE_SIZE)
  total.writeBigUInt64LE(BigInt(bytes), BYTES_OFFSET)
  total.writeBigUInt64LE(BigInt(Math.round(seconds * 1e9)), NANOSECONDS_OFFSET)
  return total
}

export function decodeTotal(bytes: Buffer): Total {
  return {
    bytes: Number(bytes.readBigUInt64LE(BYTES_OFFSET)),
    seconds: Number(bytes.readBigUInt64LE(NANOSECONDS_OFFSET)) / 1e9,
  }
}

function message(): Buffer {
  const bytes = Buffer.alloc(PERF_MESSAGE_SIZE)
  bytes.writeUInt32LE(PERF_MAGIC)
  bytes.writeUInt8(PERF_VERSION, VERSION_OFFSET)
  return bytes
}

function isOurs(bytes: Buffer): boolean {
  return (
    bytes.length === PERF_MESSAGE_SIZE &&
    bytes.readUInt32LE() === PERF_MAGIC &&
    bytes.readUInt8(VERSION_OFFSET) === PERF_VERSION
  )
}
