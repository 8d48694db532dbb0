/** For each driver of this package: whether it can be used here, and whether the policy allows it. */
import { describeDevice, drivers } from '../../../nic/index.ts'
import { allowsDriver } from '../../policy/own-policy.ts'
import type { Check } from './check.ts'

const REACHES = {
  thread: 'within one thread',
  host: 'between processes of one host',
  network: 'between hosts',
}

export function driverChecks(): Check[] {
  return Array.from(drivers.values(), driver => {
    const name = `driver ${driver.name}`
    const availability = driver.availability()
    if (!availability.usable) {
      const hint = driver.reach === 'network' ? { hint: 'docs/guide/rdma.md says what it takes' } : {}
      return {
        name,
        state: 'note',
        detail: `cannot be used: ${availability.code}: ${availability.reason}`,
        ...hint,
      }
    }
    if (!allowsDriver(driver.name)) {
      return { name, state: 'note', detail: 'is not allowed', hint: 'name it in drivers: of the policy' }
    }
    const device = driver.reach === 'network' ? describeDevice() : undefined
    return { name, state: 'ok', detail: `${REACHES[driver.reach]}${device ? `: ${device}` : ''}` }
  })
}
