import { drivers } from '../../nic/index.ts'
import { nodeInternals } from '../host/node-internals.ts'
import { allowsDriver, policyFailure } from '../policy/own-policy.ts'
import { type FallbackReason, fallbackReason } from '../reasons.ts'

/** Why nothing can be fast in this process; undefined if things can. */
export function reasonAgainstFastWay(): FallbackReason | undefined {
  if (process.env.FASTSOCKETS_DISABLE) return fallbackReason('DISABLED')
  const failure = policyFailure()
  if (failure !== undefined) return fallbackReason('POLICY_INVALID', failure.message)
  const availability = drivers.get('shm')?.availability()
  if (availability === undefined) return fallbackReason('DRIVER')
  const isShmAllowed = allowsDriver('shm')
  if (!availability.usable && (isShmAllowed || availability.code === 'PLATFORM'))
    return reasonOf(availability)
  if (!isShmAllowed && !isAnyUsable()) return fallbackReason('POLICY', 'no driver that it allows can be used')
  return nodeInternals() === undefined ? fallbackReason('NODE_INTERNALS') : undefined
}

function isAnyUsable(): boolean {
  return [...drivers.values()].some(driver => allowsDriver(driver.name) && driver.availability().usable)
}

function reasonOf(availability: { readonly code: string; readonly reason: string }): FallbackReason {
  if (availability.code === 'PLATFORM') return fallbackReason('PLATFORM', availability.reason)
  if (availability.code === 'KOFFI') return fallbackReason('KOFFI', availability.reason)
  return fallbackReason('DRIVER', availability.reason)
}
