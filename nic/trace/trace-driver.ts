import type { Driver, VirtualInterface } from '../nic.ts'
import { wrapDriver } from '../wrapper/wrapped-driver.ts'
import { type DescribeFrame, TraceInterface, type WriteLine } from './trace-interface.ts'

/**
 * A driver over `inner` that logs each operation of its interfaces as one line: time since this thread began in ms,
 * which end, what. `describe` says what a frame means to the layer above.
 */
export function traceDriver(inner: Driver, write: WriteLine, describe?: DescribeFrame): Driver {
  return wrapDriver(inner, `trace:${inner.name}`, (end, number) => {
    return new TraceInterface(end, `${inner.name}#${number}`, write, describe)
  })
}

/** The same for one interface. The wrapper owns it from now on. */
export function traceInterface(
  end: VirtualInterface,
  write: WriteLine,
  describe?: DescribeFrame,
): VirtualInterface {
  return new TraceInterface(end, end.driver, write, describe)
}
