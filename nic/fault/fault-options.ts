import { NicError } from '../errors.ts'

/** Longest delay and longest stall: longer than any time-out of the layers above, and within the range of a timer. */
const DURATION_MS_MAX = 60_000
const REORDER_DISTANCE_MAX = 64
const SEED_MAX = 2 ** 32 - 1

export interface FaultOptions {
  /** 0 … 2^32 - 1. The same seed and the same calls give the same faults. */
  readonly seed: number
  /** Each rate is a share of the frames, 0 … 1, and 0 if it is not given. A lost frame never arrives. */
  readonly loss?: number
  /** Arrives twice; each copy meets its own corruption, reordering and delay. */
  readonly duplication?: number
  /** Is held back until 1 … `reorderDistance` later frames have passed, or until some polls are over. */
  readonly reordering?: number
  /** 1 … 64, by default 8. */
  readonly reorderDistance?: number
  /** 1 to 4 bits of it are flipped, anywhere. */
  readonly corruption?: number
  /** Is held back for a time within `delayMs`; what is sent meanwhile overtakes it. */
  readonly delay?: number
  /** By default 1 to 5 ms. */
  readonly delayMs?: readonly [min: number, max: number]
  /** Begins a stall: no frame passes for `stallMs`, then all pass in order. */
  readonly stall?: number
  /** By default 10 ms. */
  readonly stallMs?: number
  /** After this many frames nothing passes any more, in either direction. By default never. */
  readonly deathAfter?: number
}

export type Faults = Required<FaultOptions>

const DEFAULTS = {
  loss: 0,
  duplication: 0,
  reordering: 0,
  reorderDistance: 8,
  corruption: 0,
  delay: 0,
  delayMs: [1, 5],
  stall: 0,
  stallMs: 10,
  deathAfter: Number.POSITIVE_INFINITY,
} as const

const RATES = ['loss', 'duplication', 'reordering', 'corruption', 'delay', 'stall'] as const

/** All options, with the defaults filled in; throws one `ERR_NIC_ARGUMENT` that names everything that is wrong. */
export function checkFaults(options: FaultOptions): Faults {
  // An option given as undefined counts as not given.
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
  const faults = { ...DEFAULTS, ...given } as unknown as Faults
  const wrong = complaintsAbout(faults)
  if (wrong.length > 0) throw new NicError('ERR_NIC_ARGUMENT', `fault options: ${wrong.join('; ')}`)
  return faults
}

function complaintsAbout(faults: Faults): string[] {
  const { seed, reorderDistance, delayMs, stallMs, deathAfter } = faults
  const wrong = Object.keys(faults)
    .filter(name => name !== 'seed' && !(name in DEFAULTS))
    .map(name => `there is no ${name}`)
  const expect = (isRight: boolean, rule: string, value: unknown): void => {
    if (!isRight) wrong.push(`${rule}, not ${String(value)}`)
  }
  expect(isWhole(seed, 0, SEED_MAX), `seed must be a whole number from 0 to ${SEED_MAX}`, seed)
  for (const rate of RATES) expect(isWithin(faults[rate], 0, 1), `${rate} must be from 0 to 1`, faults[rate])
  expect(
    isWhole(reorderDistance, 1, REORDER_DISTANCE_MAX),
    `reorderDistance must be a whole number from 1 to ${REORDER_DISTANCE_MAX}`,
    reorderDistance,
  )
  expect(
    Array.isArray(delayMs) &&
      delayMs.length === 2 &&
      isWithin(delayMs[0], 0, DURATION_MS_MAX) &&
      isWithin(delayMs[1], delayMs[0], DURATION_MS_MAX),
    `delayMs must be [min, max] from 0 to ${DURATION_MS_MAX}`,
    delayMs,
  )
  expect(isWithin(stallMs, 0, DURATION_MS_MAX), `stallMs must be from 0 to ${DURATION_MS_MAX}`, stallMs)
  expect(
    deathAfter === Number.POSITIVE_INFINITY || isWhole(deathAfter, 0, Number.MAX_SAFE_INTEGER),
    'deathAfter must be a whole number of frames',
    deathAfter,
  )
  return wrong
}

function isWithin(value: unknown, min: number, max: number): boolean {
  return typeof value === 'number' && value >= min && value <= max
}

function isWhole(value: unknown, min: number, max: number): boolean {
  return Number.isInteger(value) && isWithin(value, min, max)
}
