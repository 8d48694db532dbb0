/**
 * Messages of two endpoints outside the virtual interface: JSON, one message a line, over a stream socket that
 * stays open as long as their channel. Its end without a BYE means that the peer's process has died.
 *
 *   OPEN     dialling side, first   the endpoint, the caller's name, its drivers, credits and tag: the first MAP
 *   OFFER    answering side         a driver and the address blob that it made; the credits to use
 *   REPLY    dialling side          bytes of its driver for the driver of the other side, if there are any
 *   REFUSE   answering side         the reason; ends the connection
 *   MAP      either side            asks for the segment, showing a tag
 *   MAPPED   the other side         whether the tag is right, and then the segment
 *   UNMAP    either side            takes back one MAP; how many replies this side has sent back so far
 *   BYE      either side            the endpoint is closed on purpose
 *
 * A caller that knows an address only asks first, on a connection of its own:
 *
 *   WHO      dialling side          which endpoint listens here
 *   HERE     answering side         its name; ends the connection
 */
import { CREDITS_LIMIT } from '../message-layout.ts'
import { SEGMENT_MAX } from '../segment.ts'

export const CONTROL_VERSION = 3
/** Characters in one line: more than the longest message. */
export const LINE_MAX = 16 * 1024
const DRIVERS_MAX = 32
/** Characters in a name, and in the text of a refusal. */
export const NAME_MAX = 256
/** Characters in base64. */
const BLOB_MAX = 4096

export type RefusalCode = 'VERSION' | 'NO_SUCH_ENDPOINT' | 'NO_DRIVER' | 'LIMIT'

export interface Open {
  readonly op: 'open'
  readonly version: number
  /** The last field of the name that was dialled: 16 hexadecimal digits. */
  readonly to: string
  /** The dialling endpoint's whole name. */
  readonly from: string
  readonly drivers: readonly string[]
  readonly credits: number
  /** The first MAP, answered as soon as the interfaces are connected: 16 hexadecimal digits. */
  readonly tag: string
}

export interface Offer {
  readonly op: 'offer'
  readonly driver: string
  /** base64 */
  readonly blob: string
  readonly credits: number
}

export interface Reply {
  readonly op: 'reply'
  /** base64 */
  readonly blob: string
}

export interface Refuse {
  readonly op: 'refuse'
  readonly code: RefusalCode
  readonly text: string
}

export interface MapRequest {
  readonly op: 'map'
  readonly id: number
  /** 16 hexadecimal digits */
  readonly tag: string
}

export interface Mapped {
  readonly op: 'mapped'
  readonly id: number
  readonly isTagRight: boolean
  /** Bytes of the segment, and of the longest long message. */
  readonly segment: number
  readonly longMax: number
  /** Long messages to it come back. */
  readonly isReadOnly: boolean
  /** base64; empty if there is no one-sided access. */
  readonly key: string
}

export interface Unmap {
  readonly op: 'unmap'
  /** Replies that this side has sent back so far. */
  readonly bounced: number
}

export interface Bye {
  readonly op: 'bye'
}

export interface Who {
  readonly op: 'who'
}

export interface Here {
  readonly op: 'here'
  readonly name: string
}

export type ControlMessage = Open | Offer | Reply | Refuse | MapRequest | Mapped | Unmap | Bye | Who | Here

type Check = (value: unknown) => boolean

const text =
  (max: number): Check =>
  value =>
    typeof value === 'string' && value.length <= max
const number =
  (max: number): Check =>
  value =>
    Number.isInteger(value) && (value as number) >= 0 && (value as number) <= max
const texts =
  (count: number, max: number): Check =>
  value =>
    Array.isArray(value) && value.length <= count && value.every(text(max))
const pattern =
  (expression: RegExp): Check =>
  value =>
    typeof value === 'string' && expression.test(value)

const REFUSALS = /^(VERSION|NO_SUCH_ENDPOINT|NO_DRIVER|LIMIT)$/
const ID_MAX = 2 ** 31 - 1

const FIELDS: Record<ControlMessage['op'], Record<string, Check>> = {
  open: {
    version: number(ID_MAX),
    to: pattern(/^[0-9a-f]{16}$/),
    from: text(NAME_MAX),
    drivers: texts(DRIVERS_MAX, NAME_MAX),
    credits: value => number(CREDITS_LIMIT)(value) && value !== 0,
    tag: pattern(/^[0-9a-f]{16}$/),
  },
  offer: {
    driver: text(NAME_MAX),
    blob: text(BLOB_MAX),
    credits: value => number(CREDITS_LIMIT)(value) && value !== 0,
  },
  reply: { blob: text(BLOB_MAX) },
  refuse: { code: pattern(REFUSALS), text: text(NAME_MAX) },
  map: { id: number(ID_MAX), tag: pattern(/^[0-9a-f]{16}$/) },
  mapped: {
    id: number(ID_MAX),
    isTagRight: value => typeof value === 'boolean',
    segment: number(SEGMENT_MAX),
    longMax: number(SEGMENT_MAX),
    isReadOnly: value => typeof value === 'boolean',
    key: text(BLOB_MAX),
  },
  unmap: { bounced: number(Number.MAX_SAFE_INTEGER) },
  bye: {},
  who: {},
  here: { name: text(NAME_MAX) },
}

/** Decodes and checks a line; undefined if it is no message: a stranger may have written it. */
export function decodeControl(line: string): ControlMessage | undefined {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const message = value as Record<string, unknown>
  if (typeof message.op !== 'string' || !Object.hasOwn(FIELDS, message.op)) return undefined
  const fields = FIELDS[message.op as ControlMessage['op']]
  const isWhole = Object.entries(fields).every(([name, check]) => check(message[name]))
  return isWhole ? (message as unknown as ControlMessage) : undefined
}

export function encodeTag(tag: bigint): string {
  return tag.toString(16).padStart(16, '0')
}

export function decodeTag(text: string): bigint {
  return BigInt(`0x${text}`)
}
