import { rangeError, typeError } from './errors.ts'

/** The 64 bits that a sender must show to an endpoint, as the two words that travel. */
export interface Tag {
  readonly low: number
  readonly high: number
  /** Tag 0 is the default of endpoints and does not travel. */
  readonly isZero: boolean
}

export function tagOf(value: bigint): Tag {
  if (typeof value !== 'bigint') throw typeError(`a tag must be a bigint, not ${typeof value}`)
  if (value !== BigInt.asUintN(64, value)) throw rangeError(`tag ${value} is not within 0..2^64-1`)
  const low = Number(BigInt.asIntN(32, value))
  const high = Number(BigInt.asIntN(32, value >> 32n))
  return { low, high, isZero: value === 0n }
}

export const ZERO_TAG = tagOf(0n)
