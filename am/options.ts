import { drivers as allDrivers, type Driver, NicError } from '../nic/index.ts'
import { CREDITS_DEFAULT } from './channel.ts'
import type { Progress } from './channel-group.ts'
import { assertCredits } from './checks.ts'
import { rangeError, typeError } from './errors.ts'
import { WORDS_MAX } from './message-layout.ts'
import { parsePlace, type TcpAddress } from './rendezvous/tcp-address.ts'
import { SEGMENT_MAX, type SegmentAccess } from './segment.ts'
import { type Tag, tagOf } from './tag.ts'

/** Silence after which a peer's host counts as dead. */
const PEER_TIMEOUT_MS_DEFAULT = 30_000
const PEER_TIMEOUT_MS_MIN = 2000
const PEER_TIMEOUT_MS_MAX = 3_600_000
/** Largest payload of a medium message. */
export const MEDIUM_MAX = 64 * 1024
/** Largest payload of a long message, or of a get, unless an endpoint asks for more. */
export const LONG_MAX_DEFAULT = 4 * 1024 * 1024

export interface EndpointLimits {
  readonly words: typeof WORDS_MAX
  /** Bytes of payload. */
  readonly medium: number
  readonly long: number
}

export interface EndpointOptions {
  /**
   * A name to publish, [a-z0-9._/-]{1,200}; needs the name service. Users that may look the name up also learn the
   * tag.
   */
  readonly name?: string
  /** Tag that senders must show; 64 bits. */
  readonly tag?: bigint
  /** Bytes of the segment, which peers may write to and get from. */
  readonly segment?: number
  /** `read`: peers get from the segment, and their long messages come back as OUT_OF_BOUNDS. Default: `read-write`. */
  readonly segmentAccess?: SegmentAccess
  /** Drivers, or names of this package's drivers, in order of preference. Default: all that work here but `ethernet`. */
  readonly drivers?: readonly (string | Driver)[]
  /**
   * Address and port at which callers of other hosts reach the endpoint, as '0.0.0.0:7400'. Needs a shared key unless it
   * is a loopback address. Endpoints of one thread that name the same address share the port.
   */
  readonly listen?: string
  /** A peer whose host is silent for so long counts as dead: 2000 to 3600000 ms; 30000 by default. */
  readonly peerTimeoutMs?: number
  /** `event-loop`: the poller runs handlers. `manual`: only `poll()` runs them. */
  readonly progress?: Progress
  /** Requests under way to each peer; two endpoints use the smaller number of both. */
  readonly credits?: number
  /**
   * Longest payloads that this endpoint sends and accepts: medium at most 64 KiB (the default), long by default 4
   * MiB.
   */
  readonly limits?: { readonly medium?: number; readonly long?: number }
}

export interface CheckedOptions {
  readonly name: string | undefined
  readonly tag: bigint
  readonly tagWords: Tag
  readonly segment: number
  readonly segmentAccess: SegmentAccess
  /** The usable ones. */
  readonly drivers: readonly Driver[]
  /** All that the endpoint would use, in order of preference. */
  readonly preferred: readonly Driver[]
  readonly listen: TcpAddress | undefined
  readonly peerTimeoutMs: number
  readonly progress: Progress
  readonly credits: number
  readonly limits: EndpointLimits
}

/** Raw frames are for programs that name them: a process of root would change its ways otherwise. */
const DEFAULT_DRIVERS = [...allDrivers.values()].filter(({ name }) => name !== 'ethernet')
const KNOWN: readonly string[] = [
  'name',
  'tag',
  'segment',
  'segmentAccess',
  'drivers',
  'listen',
  'peerTimeoutMs',
  'progress',
  'credits',
  'limits',
]
const KNOWN_LIMITS: readonly string[] = ['medium', 'long']

/** The options with their defaults; throws on invalid options. */
export function checkOptions(options: EndpointOptions): CheckedOptions {
  assertKnown('option', options, KNOWN)
  assertKnown('limit', options.limits ?? {}, KNOWN_LIMITS)
  if (options.name !== undefined && typeof options.name !== 'string') {
    throw typeError(`name must be a string, not ${typeof options.name}`)
  }
  const tag = options.tag ?? 0n
  const progress = options.progress ?? 'event-loop'
  if (progress !== 'event-loop' && progress !== 'manual') {
    throw rangeError(`progress must be 'event-loop' or 'manual', not ${String(progress)}`)
  }
  const segmentAccess = options.segmentAccess ?? 'read-write'
  if (segmentAccess !== 'read' && segmentAccess !== 'read-write') {
    throw rangeError(`segmentAccess must be 'read' or 'read-write', not ${String(segmentAccess)}`)
  }
  const credits = options.credits ?? CREDITS_DEFAULT
  assertCredits(credits)
  return {
    name: options.name,
    tag,
    tagWords: tagOf(tag),
    segment: within('segment', options.segment ?? 0, 0, SEGMENT_MAX),
    segmentAccess,
    ...chooseDrivers(options.drivers),
    listen: checkListen(options.listen),
    peerTimeoutMs: within(
      'peerTimeoutMs',
      options.peerTimeoutMs ?? PEER_TIMEOUT_MS_DEFAULT,
      PEER_TIMEOUT_MS_MIN,
      PEER_TIMEOUT_MS_MAX,
    ),
    progress,
    credits,
    limits: {
      words: WORDS_MAX,
      medium: within('limits.medium', options.limits?.medium ?? MEDIUM_MAX, 0, MEDIUM_MAX),
      long: within('limits.long', options.limits?.long ?? LONG_MAX_DEFAULT, 0, SEGMENT_MAX),
    },
  }
}

function assertKnown(what: string, options: object, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null) throw typeError(`${what}s must be an object`)
  for (const key of Object.keys(options)) {
    if (!known.includes(key)) throw typeError(`there is no ${what} ${key}; there are ${known.join(', ')}`)
  }
}

function checkListen(listen: string | undefined): TcpAddress | undefined {
  if (listen === undefined) return undefined
  if (typeof listen !== 'string') throw typeError(`listen must be a string, not ${typeof listen}`)
  const place = parsePlace(listen)
  if (place === undefined) throw rangeError(`listen must be ADDRESS:PORT, not ${JSON.stringify(listen)}`)
  return place
}

function chooseDrivers(wanted: EndpointOptions['drivers']): Pick<CheckedOptions, 'drivers' | 'preferred'> {
  if (wanted !== undefined && (!Array.isArray(wanted) || wanted.length === 0)) {
    throw typeError('drivers must be an array of at least one')
  }
  const chosen: Driver[] = []
  const preferred: Driver[] = []
  const reasons: string[] = []
  for (const one of wanted ?? DEFAULT_DRIVERS) {
    const driver = typeof one === 'string' ? allDrivers.get(one) : one
    if (typeof driver?.availability !== 'function') {
      throw rangeError(`there is no driver ${String(one)}; there are ${[...allDrivers.keys()].join(', ')}`)
    }
    const availability = driver.availability()
    preferred.push(driver)
    if (availability.usable) chosen.push(driver)
    else reasons.push(`${driver.name}: ${availability.reason}`)
  }
  if (chosen.length === 0 || (wanted !== undefined && reasons.length > 0)) {
    throw new NicError('ERR_NIC_UNAVAILABLE', reasons.join('; '))
  }
  return { drivers: chosen, preferred }
}

function within(name: string, value: number, min: number, max: number): number {
  if (typeof value !== 'number') throw typeError(`${name} must be a number, not ${typeof value}`)
  if (Number.isInteger(value) && value >= min && value <= max) return value
  throw rangeError(`${name} must be a whole number within ${min}..${max}, not ${value}`)
}
