/** For each driver of this package: whether it can be used here, and whether the policy allows it. */
import { type Driver, describeDevice, drivers, keyFile, readKey } from '../../../nic/index.ts'
import { allowsDriver } from '../../policy/own-policy.ts'
import type { Check } from './check.ts'

const REACHES = {
  thread: 'within one thread',
  host: 'between processes of one host',
  network: 'between hosts',
}

/** What makes a driver usable. */
const HINTS: Readonly<Record<string, string>> = {
  verbs: 'docs/guide/rdma.md says what it takes',
  ethernet: 'start the program with CAP_NET_RAW, or its descriptors by `fastsockets nic open`',
}

export function driverChecks(): Check[] {
  return Array.from(drivers.values(), driver => {
    const name = `driver ${driver.name}`
    const availability = driver.availability()
    if (!availability.usable) {
      const hint = HINTS[driver.name]
      return {
        name,
        state: 'note',
        detail: `cannot be used: ${availability.code}: ${availability.reason}`,
        ...(hint && { hint }),
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

/** Between hosts active messages need the shared key. Sockets use `ethernet` where the policy names it. */
function keyCheck(name: string, driver: Driver): Check {
  const isEthernet = driver.name === 'ethernet'
  const users = isEthernet && allowsDriver(driver.name) ? 'sockets and active messages' : 'active messages'
  const hosts = isEthernet ? 'between hosts of one Ethernet segment' : REACHES[driver.reach]
  try {
    if (readKey() !== undefined)
      return {
        name,
        state: 'ok',
        detail: `${hosts}, with the key of ${keyFile()}, for ${users}`,
      }
    const hint = 'both hosts need a key: name its file in FASTSOCKETS_KEY_FILE, or keyFile: of the policy'
    return { name, state: 'note', detail: withoutKey(users, hosts), hint }
  } catch (error) {
    return { name, state: 'note', detail: `within this host only: ${(error as Error).message}` }
  }
}

function withoutKey(users: string, hosts: string): string {
  const active = 'within this host only, for active messages'
  return users === 'active messages' ? active : `${active}; ${hosts} for sockets`
}
