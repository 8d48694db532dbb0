import { type Clock, realClock } from '../../nic/clock.ts'
import { AmError } from '../errors.ts'

const RETENTION_BYTES_MIN = 16 * 1024
const RETENTION_BYTES_MAX = 1 << 30
/** As much as a driver's queue holds by default. */
export const RETENTION_BYTES_DEFAULT = 1 << 20
export const PEER_TIMEOUT_MS_DEFAULT = 10_000
const SEQUENCE_MAX = 2 ** 32 - 1

export interface ReliabilityOptions {
  /** Bytes of frames that are kept until they are acknowledged: a power of two from 16 KiB to 1 GiB, by default 1 MiB. */
  readonly retentionBytes?: number
  /** How long the peer may be silent while frames are unacknowledged, by default 10 s; then it is lost. */
  readonly peerTimeoutMs?: number
  /** Number of the first frame each way, by default 0. */
  readonly firstSequence?: number
  /** By default the real one. */
  readonly clock?: Clock
}

/** What both ends keep to, from the same options and the same capabilities below. */
export interface Limits {
  /** Longest frame for the layer above, and longest part of one: a multiple of 8. */
  readonly frameMax: number
  readonly partMax: number
  /** Most parts under way each way. */
  readonly window: number
  readonly retentionBytes: number
}

/** All options, with the defaults filled in; throws `ERR_AM_ARGUMENT`. */
export function checkOptions(options: ReliabilityOptions): Required<ReliabilityOptions> {
  const {
    retentionBytes = RETENTION_BYTES_DEFAULT,
    peerTimeoutMs = PEER_TIMEOUT_MS_DEFAULT,
    firstSequence = 0,
    clock = realClock,
  } = options
  if (
    !isWhole(retentionBytes, RETENTION_BYTES_MIN, RETENTION_BYTES_MAX) ||
    (retentionBytes & (retentionBytes - 1)) !== 0
  ) {
    throw new AmError('ERR_AM_ARGUMENT', 'retentionBytes must be a power of two between 16 KiB and 1 GiB')
  }
  if (!(peerTimeoutMs > 0)) throw new AmError('ERR_AM_ARGUMENT', 'peerTimeoutMs must be positive')
  if (!isWhole(firstSequence, 0, SEQUENCE_MAX)) {
    throw new AmError('ERR_AM_ARGUMENT', 'firstSequence must be a whole number from 0 to 2^32 - 1')
  }
  return { retentionBytes, peerTimeoutMs, firstSequence, clock }
}

function isWhole(value: number, min: number, max: number): boolean {
  return Number.isInteger(value) && value >= min && value <= max
}
