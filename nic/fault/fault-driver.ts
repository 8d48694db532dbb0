import type { Driver, VirtualInterface } from '../nic.ts'
import { wrapDriver } from '../wrapper/wrapped-driver.ts'
import { FaultInterface } from './fault-interface.ts'
import { checkFaults, type FaultOptions } from './fault-options.ts'

/** The golden ratio: the seeds of the interfaces of one driver lie far apart. */
const SEED_STEP = 0x9e3779b9

/**
 * A driver over `inner` whose frames meet faults, each way on its sending side. Each interface draws from a seed of its
 * own, by the order of the calls of `offer` and `connect`.
 */
export function faultDriver(inner: Driver, options: FaultOptions): Driver {
  const faults = checkFaults(options)
  return wrapDriver(inner, `fault:${inner.name}`, (end, number) => {
    const seed = (faults.seed + Math.imul(number, SEED_STEP)) >>> 0
    return new FaultInterface(end, { ...faults, seed })
  })
}

/** The same for one interface. The wrapper owns `end` from now on. */
export function wrapWithFaults(end: VirtualInterface, options: FaultOptions): FaultInterface {
  return new FaultInterface(end, checkFaults(options))
}
