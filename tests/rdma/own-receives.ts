import { RING_SIZE_MIN } from '../../nic/verbs/frame-layout.ts'
import { OWN_RECEIVERS_MAX } from '../../nic/verbs/shared-receives.ts'
import type { VerbsAdapter } from '../../nic/verbs/verbs-adapter.ts'
import { VerbsInterface } from '../../nic/verbs/verbs-interface.ts'

/** Ends that use up all receives of an adapter that are not shared: later ends have some of the shared queue. */
export function takeOwnReceives(adapter: VerbsAdapter): VerbsInterface[] {
  return Array.from(
    { length: OWN_RECEIVERS_MAX },
    () => new VerbsInterface(adapter, adapter.cache, RING_SIZE_MIN),
  )
}
