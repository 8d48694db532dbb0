/**
 * The size from which on chunks are offered instead of copied. Measured once for each kind of peer, and stored in a
 * file (WSDLite 2000: the threshold is a property of the machine, measured when it is first needed).
 */
import { type CopyCosts, drivers, openLog } from '../../../nic/index.ts'
import { ZCOPY_VARIABLE } from '../../policy/own-policy.ts'
import { THRESHOLD_MIN } from '../stream-layout.ts'
import { readThreshold, writeThreshold } from './threshold-file.ts'

export { THRESHOLD_MIN } from '../stream-layout.ts'

export const THRESHOLD_VARIABLE = ZCOPY_VARIABLE
/**
 * The largest size that is measured; the smallest is THRESHOLD_MIN. If the copy is cheaper even then, nothing is
 * offered.
 */
const MEASURED_MAX = 1 << 20
/** For drivers without a measurement. */
const THRESHOLD_DEFAULT = 256 * 1024
/** Further cost of an offer: two messages, and the wake-up of the writer. */
const OFFER_US = 60
const NEVER = Number.POSITIVE_INFINITY

const log = openLog('fastsockets:zcopy')
const known = new Map<string, Threshold>()

export interface Threshold {
  /** Infinity: everything is copied. */
  readonly bytes: number
  readonly from: 'environment' | 'file' | 'measured' | 'default'
}

/** Measures if nothing is known: some 3 ms, once. */
export function thresholdOf(driver: string): Threshold {
  let threshold = known.get(driver)
  if (threshold === undefined) {
    threshold = fromEnvironment(process.env[THRESHOLD_VARIABLE]) ?? remembered(driver) ?? measured(driver)
    known.set(driver, threshold)
    log('%s: %d bytes (%s)', driver, threshold.bytes, threshold.from)
  }
  return threshold
}

/** A number of bytes, or `off`. Warns of anything else, and returns undefined. */
export function fromEnvironment(text: string | undefined): Threshold | undefined {
  if (text === undefined || text === '') return undefined
  if (text === 'off') return { bytes: NEVER, from: 'environment' }
  if (/^\d{1,15}$/.test(text)) return { bytes: Math.max(Number(text), THRESHOLD_MIN), from: 'environment' }
  process.emitWarning(`${THRESHOLD_VARIABLE} is ${JSON.stringify(text)}: not a number of bytes, nor "off"`, {
    code: 'FASTSOCKETS_ZCOPY_THRESHOLD',
  })
  return undefined
}

function remembered(driver: string): Threshold | undefined {
  const bytes = readThreshold(driver)
  return bytes === undefined ? undefined : { bytes, from: 'file' }
}

function measured(driver: string): Threshold {
  const measureCosts = drivers.get(driver)?.measureCosts
  const bytes = measureCosts && crossover(measureCosts)
  if (bytes === undefined) return { bytes: THRESHOLD_DEFAULT, from: 'default' }
  writeThreshold(driver, bytes)
  return { bytes, from: 'measured' }
}

/** The smallest size from which on one copy and the offer are cheaper than two copies. */
export function crossover(costsOf: (length: number) => CopyCosts | undefined): number | undefined {
  let bytes = NEVER
  for (let length = MEASURED_MAX; length >= THRESHOLD_MIN; length /= 2) {
    const costs = costsOf(length)
    if (costs === undefined) return undefined
    if (costs.onceUs + OFFER_US >= costs.twiceUs) break
    bytes = length
  }
  return bytes
}
