/** The lists of drivers that endpoints are to work over; also for the programs that tests start. */
import type { EndpointOptions } from '../../am/index.ts'
import { type Driver, drivers, faultDriver } from '../../nic/index.ts'
import { LISTEN_VARIABLE } from './placement.ts'

export interface DriverList {
  readonly name: string
  readonly drivers: readonly (string | Driver)[]
}

/** Where there is an RDMA device (tests/rdma) the same tests are run over it. */
const chosen = process.env.FASTSOCKETS_TEST_DRIVER
const only = chosen ? [{ name: chosen, drivers: [chosen] }] : undefined

/** One more line is one more run of every test over endpoints. Order and time of arrival are not promised. */
export const DRIVER_LISTS: readonly DriverList[] = only ?? [
  { name: 'loopback', drivers: ['loopback'] },
  { name: 'shm', drivers: ['shm'] },
  { name: 'tcp', drivers: ['tcp'] },
  faulty('loopback'),
]

/** How the endpoints of two processes are connected; programs that tests start know a list by its name. */
export const PROCESS_DRIVER_LISTS: readonly DriverList[] = only ?? [
  { name: 'shm', drivers: ['shm'] },
  { name: 'tcp', drivers: ['tcp'] },
  faulty('shm'),
]

/** Without the bad networks: what was lost is sent again only while both sides poll. */
export const RELIABLE_DRIVER_LISTS = DRIVER_LISTS.filter(({ name }) => !name.startsWith('bad'))
export const RELIABLE_PROCESS_DRIVER_LISTS = PROCESS_DRIVER_LISTS.filter(
  ({ name }) => !name.startsWith('bad'),
)

/** Long messages and gets go in parts over these. */
export const COPYING_DRIVER_LISTS: readonly DriverList[] = only ? [] : [copying('loopback'), copying('shm')]
export const COPYING_PROCESS_DRIVER_LISTS: readonly DriverList[] = only ? [] : [copying('shm')]

/** Why what takes long, and says nothing of the driver, is left out, or false if it is not. */
export const SLOW_REASON = only ? 'an emulator is too slow for it' : false

/** Why nothing can be tested over these drivers, or false if it can. */
export function skipReason(list: DriverList): string | false {
  for (const one of list.drivers) {
    const availability = (typeof one === 'string' ? drivers.get(one) : one)?.availability()
    if (availability?.usable !== true)
      return `${list.name}: ${availability?.reason ?? 'there is no such driver'}`
  }
  return false
}

/** Where the endpoints of tests are on two hosts (`npm run test:containers`), each listens for callers of the other. */
const { [LISTEN_VARIABLE]: listen } = process.env
export const LISTENING: { readonly listen?: string } = listen ? { listen } : {}

/** For a program that gets the name of a list. */
export function optionsOf(name: string | undefined): EndpointOptions {
  return { drivers: driversOf(name), ...LISTENING }
}

export function driversOf(name: string | undefined): DriverList['drivers'] {
  const lists = [...DRIVER_LISTS, ...PROCESS_DRIVER_LISTS, ...COPYING_DRIVER_LISTS]
  const list = lists.find(one => one.name === name)
  if (list === undefined) throw new Error(`there is no list of drivers ${name}`)
  return list.drivers
}

/** Over a bad network. The seed is fixed: a failure must be repeatable. */
function faulty(name: string): DriverList {
  const rate = 0.03
  const faults = { seed: 1997, loss: rate, duplication: rate, reordering: rate, corruption: rate }
  return { name: `bad ${name}`, drivers: [faultDriver(drivers.get(name) as Driver, faults)] }
}

function copying(name: string): DriverList {
  const driver = drivers.get(name) as Driver
  return { name: `${name} without one-sided access`, drivers: [withoutOneSided(driver)] }
}

/** The driver, without one-sided access to registered memory. */
export function withoutOneSided(driver: Driver): Driver {
  const reason = 'the test says that there is none'
  return {
    name: driver.name,
    reach: driver.reach,
    availability: () => driver.availability(),
    offer: options => {
      const offer = driver.offer(options)
      const accepted = offer.accepted.then(restrict)
      accepted.catch(() => {})
      return { ...offer, accepted }
    },
    connect: async (blob, options) => restrict(await driver.connect(blob, options)),
  }

  function restrict<T extends { readonly capabilities: object }>(end: T): T {
    const capabilities = { ...end.capabilities, rdmaRead: false, rdmaWrite: false, rdmaReason: reason }
    return Object.defineProperty(end, 'capabilities', { value: capabilities })
  }
}
