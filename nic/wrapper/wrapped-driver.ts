import type { Driver, VirtualInterface } from '../nic.ts'

/**
 * Puts a wrapper round one end. `number` tells the ends of a driver apart: the first offer is 0, the first connect 1,
 * the second offer 2, and so on; it depends on the calls only, not on who is connected first.
 */
export type WrapEnd = (end: VirtualInterface, number: number) => VirtualInterface

/**
 * A driver whose interfaces are those of `inner`, wrapped. Addresses are those of `inner`, so that either side may use
 * the wrapper alone.
 */
export function wrapDriver(inner: Driver, name: string, wrap: WrapEnd): Driver {
  let offers = 0
  let connects = 0
  return {
    name,
    reach: inner.reach,
    ...(inner.allocate && { allocate: inner.allocate }),
    ...(inner.needsAddress && { needsAddress: true }),
    availability: () => inner.availability(),
    offer(options) {
      const number = 2 * offers++
      const offer = inner.offer(options)
      const accepted = offer.accepted.then(end => wrap(end, number))
      // A caller that cancels may ignore the rejection.
      accepted.catch(() => {})
      return { ...offer, accepted }
    },
    async connect(blob, options) {
      const number = 2 * connects++ + 1
      return wrap(await inner.connect(blob, options), number)
    },
  }
}
