import { drivers, hostIdentity, mayUseNetwork } from '../../nic/index.ts'
import { isDisabled } from '../host/environment.ts'
import { keptGlobals } from '../host/kept-globals.ts'
import { nodeInternals } from '../host/node-internals.ts'
import { isDeprecationPending } from '../host/process-binding.ts'
import { allowsDriver, policyFailure } from '../policy/own-policy.ts'
import { DRIVERS } from '../policy/policy-schema.ts'
import { type FallbackReason, fallbackReason } from '../reasons.ts'

/** Globals that the fast way needs; a program may have removed them. */
const NEEDED = {
  Atomics: keptGlobals.Atomics,
  SharedArrayBuffer: keptGlobals.SharedArrayBuffer,
  WeakRef: keptGlobals.WeakRef,
}

let failure: FallbackReason | undefined

/** Starting the fast way has failed: all later sockets use TCP. */
export function noteFailedStart(error: unknown): FallbackReason {
  failure ??= fallbackReason('NOT_STARTED', messageOf(error))
  return failure
}

/**
 * Why no socket can be fast now; each connect asks: an invalid policy may be replaced by a valid one. If the permission model forbids the network, Node's own connect
 * then reports the missing permission.
 */
export function reasonNow(): FallbackReason | undefined {
  if (failure !== undefined) return failure
  const invalid = policyFailure()
  if (invalid !== undefined) return fallbackReason('POLICY_INVALID', invalid.message)
  if (mayUseNetwork()) return undefined
  return fallbackReason('NOT_STARTED', 'the permission model lets this program use no network')
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Why nothing can be fast in this process; undefined if sockets can be fast. */
export function reasonAgainstFastWay(): FallbackReason | undefined {
  if (isDisabled()) return fallbackReason('DISABLED')
  const invalid = policyFailure()
  if (invalid !== undefined) return fallbackReason('POLICY_INVALID', invalid.message)
  return reasonForGood()
}

/** As `reasonAgainstFastWay`, without an invalid policy, which may be replaced. */
export function reasonForGood(): FallbackReason | undefined {
  if (failure !== undefined) return failure
  try {
    return look()
  } catch (error) {
    return noteFailedStart(error)
  }
}

function look(): FallbackReason | undefined {
  if (isDisabled()) return fallbackReason('DISABLED')
  const availability = drivers.get('shm')?.availability()
  if (availability === undefined) return fallbackReason('DRIVER')
  const isShmAllowed = policyFailure() !== undefined || allowsDriver('shm')
  if (!availability.usable && (isShmAllowed || availability.code === 'PLATFORM'))
    return reasonOf(availability)
  if (!isShmAllowed && !isAnyUsable()) return fallbackReason('POLICY', 'no driver that it allows can be used')
  for (const [name, needed] of Object.entries(NEEDED))
    if (needed === undefined) return fallbackReason('NOT_STARTED', `there is no ${name}`)
  if (isDeprecationPending())
    return fallbackReason(
      'NOT_STARTED',
      'with --pending-deprecation Node would warn of its functions that Fast Sockets calls',
    )
  // Read early, while descriptors are free, and cached. Without the identity no peer could see that it is on this host.
  hostIdentity()
  return nodeInternals() === undefined ? fallbackReason('NODE_INTERNALS') : undefined
}

function isAnyUsable(): boolean {
  return DRIVERS.some(name => allowsDriver(name) && drivers.get(name)?.availability().usable)
}

function reasonOf(availability: { readonly code: string; readonly reason: string }): FallbackReason {
  if (availability.code === 'PLATFORM') return fallbackReason('PLATFORM', availability.reason)
  if (availability.code === 'KOFFI') return fallbackReason('KOFFI', availability.reason)
  return fallbackReason('DRIVER', availability.reason)
}
