/**
 * The bytes of the bootstrap. Little-endian. The server speaks first: a stranger that holds the port never receives a byte.
 *
 *   GREETING  server -> client, over the TCP connection to a hashed port or the unix connection to a shadow
 *             or to a name in the rendezvous folder
 *   HELLO     client -> server, in one network namespace over a unix connection to the door that the greeting names, else
 *             over the connection of the greeting
 *   96 bytes each
 *   +0   magic, 8 bytes: 'FASTSOCK' or 'FSHELLO\0'
 *   +8   version (u16)             these first 12 bytes are the same in every version
 *   +10  zero (u16)
 *   +12  port (u16): the listener's own port, which this hashed port stands for; 0 on a unix path
 *   +14  flags (u16): in a GREETING FLAG_SHARED if several listeners share the port, FLAG_REQUIRED if the policy requires the
 *        listener's connections to be fast; else zero
 *   +16  endpoint id, 16 random bytes of the speaker's thread
 *   +32  host identity, 16 bytes (host-identity-layout.ts)
 *   +48  user id (u32)
 *   +52  process id (u32), for people; 0 through the rendezvous folder, beyond which it means nothing
 *   +56  zero, 8 bytes
 *   +64  door, 16 random bytes: in a GREETING the name of the server's door (door.ts), zero if it has none; zero in a HELLO, but
 *        through the rendezvous folder the client's own address towards the listener, IPv4 mapped into IPv6; zero for a unix path
 *   +80  listener id, 16 random bytes: a HELLO repeats those of the GREETING that the client has read
 *
 *   A server that has loaded nothing but its preload sends the first EARLY_SIZE bytes of its GREETING, and the others once the
 *   client has sent the magic of a HELLO.
 *
 *   ANSWER    server -> client, 16 bytes and `length` more, over the connection of the HELLO
 *   +0   magic 'FSANSWER'
 *   +8   result (u16): 0 an offer follows, else a REFUSAL
 *   +10  length (u16) of the body, at most ANSWER_BODY_MAX
 *   +12  zero (u32)
 *   +16  driver name length (u8), driver name, the driver's address blob
 *
 *   REPLY     client -> server, 16 bytes and `length` more: only after an offer of a driver that needs one
 *   +0   magic 'FSREPLY\0'
 *   +8   zero (u16)
 *   +10  length (u16) of the body, at most ANSWER_BODY_MAX
 *   +12  zero (u32)
 *   +16  bytes of the client's driver for the server's driver
 *
 * The first frame of the channel, either way, carries the hash of GREETING, HELLO and ANSWER (transcript.ts).
 */
import { HOST_IDENTITY_SIZE } from '../../nic/host-identity-layout.ts'

export const VERSION = 12
export const GREETING_MAGIC = Buffer.from('FASTSOCK', 'latin1')
export const HELLO_MAGIC = Buffer.from('FSHELLO\0', 'latin1')
export const ANSWER_MAGIC = Buffer.from('FSANSWER', 'latin1')

export const REPLY_MAGIC = Buffer.from('FSREPLY\0', 'latin1')

export const INTRODUCTION_SIZE = 96
/** Of an early greeting: as far as the port. */
export const EARLY_SIZE = 14
const ENDPOINT_ID_SIZE = 16
export const DOOR_SIZE = 16
export const LISTENER_ID_SIZE = 16
export const ANSWER_HEADER_SIZE = 16
export const ANSWER_BODY_MAX = 512

const AT_VERSION = 8
const AT_PORT = 12
const AT_FLAGS = 14
const AT_ENDPOINT_ID = 16
const AT_HOST_IDENTITY = 32
const AT_UID = 48
const AT_PID = 52
const AT_DOOR = 64
const AT_LISTENER_ID = 80
const AT_RESULT = 8
const AT_LENGTH = 10

/**
 * The workers of a cluster share the listener, or several listeners share one port: another of them may greet the next
 * caller.
 */
const FLAG_SHARED = 1
/** The listener shows its program no connection that is still on TCP. */
const FLAG_REQUIRED = 2

/** Why a server refuses a HELLO or a CONNECT. The numbers are those of the wire. */
export const REFUSAL = {
  OTHER_USER: 1,
  OTHER_HOST: 2,
  VERSION: 3,
  NOT_LISTENING: 4,
  LIMIT: 5,
  DRIVER: 6,
  /** Of a request to move: the server does not know yet whether it has the connection. */
  LATER: 7,
} as const

/** For logs. */
export function nameOfRefusal(number: number): string {
  return Object.entries(REFUSAL).find(([, value]) => value === number)?.[0] ?? String(number)
}

export interface Introduction {
  readonly version: number
  readonly port: number
  /** Set by servers only. */
  readonly isShared: boolean
  /** Set by servers only. */
  readonly isRequired: boolean
  readonly endpointId: Buffer
  readonly hostIdentity: Buffer
  readonly uid: number
  readonly pid: number
  /** In a HELLO through the rendezvous folder: the client's address. */
  readonly door: Buffer
  readonly listenerId: Buffer
}

/** Stands for a missing door or listener id. */
export const NO_ID: Buffer = Buffer.alloc(16)

export interface Answer {
  readonly result: number
  readonly driver: string
  readonly blob: Buffer
}

export function encodeIntroduction(magic: Buffer, introduction: Introduction): Buffer {
  const bytes = Buffer.alloc(INTRODUCTION_SIZE)
  magic.copy(bytes)
  bytes.writeUInt16LE(introduction.version, AT_VERSION)
  bytes.writeUInt16LE(introduction.port, AT_PORT)
  const { isShared, isRequired } = introduction
  bytes.writeUInt16LE((isShared ? FLAG_SHARED : 0) | (isRequired ? FLAG_REQUIRED : 0), AT_FLAGS)
  introduction.endpointId.copy(bytes, AT_ENDPOINT_ID)
  introduction.hostIdentity.copy(bytes, AT_HOST_IDENTITY)
  bytes.writeUInt32LE(introduction.uid, AT_UID)
  bytes.writeUInt32LE(introduction.pid, AT_PID)
  introduction.door.copy(bytes, AT_DOOR)
  introduction.listenerId.copy(bytes, AT_LISTENER_ID)
  return bytes
}

/**
 * Whether `bytes` can still become an introduction with this magic; the first byte of most strangers already differs.
 */
export function mayBe(magic: Buffer, bytes: Buffer): boolean {
  const length = Math.min(magic.length, bytes.length)
  return bytes.subarray(0, length).equals(magic.subarray(0, length))
}

/** The version in an introduction that begins with `bytes`; undefined if fewer than 10 bytes have arrived. */
export function versionOf(bytes: Buffer): number | undefined {
  return bytes.length < AT_VERSION + 2 ? undefined : bytes.readUInt16LE(AT_VERSION)
}

/** The first bytes of a greeting for the listener on `port`. */
export function encodeEarly(port: number): Buffer {
  const bytes = Buffer.alloc(EARLY_SIZE)
  GREETING_MAGIC.copy(bytes)
  bytes.writeUInt16LE(VERSION, AT_VERSION)
  bytes.writeUInt16LE(port, AT_PORT)
  return bytes
}

/** Whether `bytes` are those. */
export function isEarly(bytes: Buffer, port: number): boolean {
  return bytes.length === EARLY_SIZE && bytes.equals(encodeEarly(port))
}

/** Undefined if `bytes` is no introduction. The caller judges the version. */
export function decodeIntroduction(magic: Buffer, bytes: Buffer): Introduction | undefined {
  if (bytes.length !== INTRODUCTION_SIZE || !mayBe(magic, bytes)) return undefined
  return {
    version: bytes.readUInt16LE(AT_VERSION),
    port: bytes.readUInt16LE(AT_PORT),
    isShared: (bytes.readUInt16LE(AT_FLAGS) & FLAG_SHARED) !== 0,
    isRequired: (bytes.readUInt16LE(AT_FLAGS) & FLAG_REQUIRED) !== 0,
    endpointId: Buffer.from(bytes.subarray(AT_ENDPOINT_ID, AT_ENDPOINT_ID + ENDPOINT_ID_SIZE)),
    hostIdentity: Buffer.from(bytes.subarray(AT_HOST_IDENTITY, AT_HOST_IDENTITY + HOST_IDENTITY_SIZE)),
    uid: bytes.readUInt32LE(AT_UID),
    pid: bytes.readUInt32LE(AT_PID),
    door: Buffer.from(bytes.subarray(AT_DOOR, AT_DOOR + DOOR_SIZE)),
    listenerId: Buffer.from(bytes.subarray(AT_LISTENER_ID, AT_LISTENER_ID + LISTENER_ID_SIZE)),
  }
}

export function encodeAnswer(answer: Answer): Buffer {
  const driver = Buffer.from(answer.driver, 'latin1')
  const length = 1 + driver.length + answer.blob.length
  const bytes = Buffer.alloc(ANSWER_HEADER_SIZE + length)
  ANSWER_MAGIC.copy(bytes)
  bytes.writeUInt16LE(answer.result, AT_RESULT)
  bytes.writeUInt16LE(length, AT_LENGTH)
  bytes.writeUInt8(driver.length, ANSWER_HEADER_SIZE)
  driver.copy(bytes, ANSWER_HEADER_SIZE + 1)
  answer.blob.copy(bytes, ANSWER_HEADER_SIZE + 1 + driver.length)
  return bytes
}

/**
 * Length of the whole answer (or of another message with this magic) that begins with `bytes`; undefined if `bytes` is
 * none.
 */
export function answerLength(bytes: Buffer, magic = ANSWER_MAGIC): number | undefined {
  if (!mayBe(magic, bytes)) return undefined
  if (bytes.length < ANSWER_HEADER_SIZE) return ANSWER_HEADER_SIZE
  const length = bytes.readUInt16LE(AT_LENGTH)
  return length > ANSWER_BODY_MAX ? undefined : ANSWER_HEADER_SIZE + length
}

export function decodeAnswer(bytes: Buffer): Answer | undefined {
  if (answerLength(bytes) !== bytes.length || bytes.length <= ANSWER_HEADER_SIZE) return undefined
  const blobAt = ANSWER_HEADER_SIZE + 1 + bytes.readUInt8(ANSWER_HEADER_SIZE)
  if (blobAt > bytes.length) return undefined
  return {
    result: bytes.readUInt16LE(AT_RESULT),
    driver: bytes.toString('latin1', ANSWER_HEADER_SIZE + 1, blobAt),
    blob: Buffer.from(bytes.subarray(blobAt)),
  }
}

export function encodeReply(body: Uint8Array): Buffer {
  const bytes = Buffer.alloc(ANSWER_HEADER_SIZE + body.length)
  REPLY_MAGIC.copy(bytes)
  bytes.writeUInt16LE(body.length, AT_LENGTH)
  bytes.set(body, ANSWER_HEADER_SIZE)
  return bytes
}
