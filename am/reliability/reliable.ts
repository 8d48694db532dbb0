import type { VirtualInterface } from '../../nic/index.ts'
import type { ReliabilityOptions } from './reliability-options.ts'
import { ReliableInterface } from './reliable-interface.ts'

/** An interface that is ordered and reliable: `end` itself if it is, or else one over it. Both ends must do the same. */
export function reliable(end: VirtualInterface, options?: ReliabilityOptions): VirtualInterface {
  const { ordered, reliable } = end.capabilities
  return ordered && reliable ? end : new ReliableInterface(end, options)
}
