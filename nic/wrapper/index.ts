/** The wrappers that put faults into a driver, or log its frames. The first use loads them (wrappers.ts). */
import { createRequire } from 'node:module'
import type { FaultInterface } from '../fault/fault-interface.ts'
import type { FaultOptions } from '../fault/fault-options.ts'
import type { Driver, VirtualInterface } from '../nic.ts'
import type { DescribeFrame, WriteLine } from '../trace/trace-interface.ts'

type Rest = typeof import('./wrappers.ts')

const require = createRequire(import.meta.url)
let rest: Rest | undefined

function load(): Rest {
  rest ??= require('./wrappers.ts') as Rest
  return rest
}

/** A driver over `inner` whose frames meet faults, each way on its sending side. */
export function faultDriver(inner: Driver, options: FaultOptions): Driver {
  return load().faultDriver(inner, options)
}

/** The same for one interface. The wrapper owns `end` from now on. */
export function wrapWithFaults(end: VirtualInterface, options: FaultOptions): FaultInterface {
  return load().wrapWithFaults(end, options)
}

/**
 * A driver over `inner` that logs each operation of its interfaces as one line. `describe` says what a frame means to
 * the layer above.
 */
export function traceDriver(inner: Driver, write: WriteLine, describe?: DescribeFrame): Driver {
  return load().traceDriver(inner, write, describe)
}

/** The same for one interface. The wrapper owns `end` from now on. */
export function traceInterface(
  end: VirtualInterface,
  write: WriteLine,
  describe?: DescribeFrame,
): VirtualInterface {
  return load().traceInterface(end, write, describe)
}
