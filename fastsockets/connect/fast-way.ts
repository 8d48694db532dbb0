import { drivers } from '../../nic/index.ts'
import { nodeInternals } from '../host/node-internals.ts'
import { ownPolicy, policyFailure } from '../policy/own-policy.ts'
import { type FallbackReason, fallbackReason } from '../reasons.ts'

/** Why nothing can be fast in this process; undefined if things can. */
export function reasonAgainstFastWay(): FallbackReason | undefined {
  if (process.env.FASTSOCKETS_DISABLE) return fallbackReason('DISABLED')
  const failure = policyFailure()
  if (failure !== undefined) return fallbackReason('POLICY_INVALID', failure.message)
  if (!ownPolicy()?.allowsDriver('shm')) return fallbackReason('POLICY', 'it does not allow shm')
  const availability = drivers.get('shm')?.availability()
  if (availability === undefined) return fallbackReason('DRIVER')
  if (availability.usable) {
    return nodeInternals() === undefined ? fallbackReason('NODE_INTERNALS') : undefined
  }
  if (availability.code === 'PLATFORM') return fallbackReason('PLATFORM', availability.reason)
  if (availability.code === 'KOFFI') return fallbackReason('KOFFI', availability.reason)
  return fallbackReason('DRIVER', availability.reason)
}
