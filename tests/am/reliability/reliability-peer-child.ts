/** The other process of reliability-faults.test.ts: exchanges numbered frames over a bad network of its own. */
import { ReliableInterface } from '../../../am/index.ts'
import { type Driver, drivers, type FaultOptions, wrapWithFaults } from '../../../nic/index.ts'
import { NumberedExchange } from '../../support/numbered-exchange.ts'

export interface Task {
  /** base64 */
  readonly blob: string
  readonly count: number
  readonly faults: FaultOptions
}

process.once('message', async ({ blob, count, faults }: Task) => {
  const inner = await (drivers.get('shm') as Driver).connect(Buffer.from(blob, 'base64'))
  const wire = wrapWithFaults(inner, faults)
  const exchange = new NumberedExchange(new ReliableInterface(wire), count)
  await exchange.done
  const { next, wrong } = exchange.sink
  process.send?.({ received: next, wrong, counts: wire.counts })
})
