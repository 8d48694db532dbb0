/** For each driver of this package: whether it can be used here, and whether the policy allows it. */
import { type Driver, describeDevice, drivers, keyFile, readKey } from '../../../nic/index.ts'
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
      const hint = driver.name === 'verbs' ? { hint: 'docs/guide/rdma.md says what it takes' } : {}
      return {
        name,
        state: 'note',
        detail: `cannot be used: ${availability.code}: ${availability.reason}`,
        ...hint,
      }
    }
    if (driver.needsAddress) return keyCheck(name, driver)
    if (!allowsDriver(driver.name)) {
      return { name, state: 'note', detail: 'is not allowed', hint: 'name it in drivers: of the policy' }
    }
    const device = driver.reach === 'network' ? describeDevice() : undefined
    return { name, state: 'ok', detail: `${REACHES[driver.reach]}${device ? `: ${device}` : ''}` }
  })
}

/** Between hosts the driver needs the shared key. Sockets do not use it, so no policy names it. */
function keyCheck(name: string, { reach }: Driver): Check {
  try {
    if (readKey() !== undefined)
      return {
        name,
        state: 'ok',
        detail: `${REACHES[reach]}, with the key of ${keyFile()}, for active messages`,
      }
    const hint = 'both hosts need a key: name its file in FASTSOCKETS_KEY_FILE, or keyFile: of the policy'
    return { name, state: 'note', detail: 'within this host only, for active messages', hint }
  } catch (error) {
    return { name, state: 'note', detail: `within this host only: ${(error as Error).message}` }
  }
}
