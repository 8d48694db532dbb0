/** Endpoints for tests, over each list of drivers that endpoints are to work over. */
import t, { type Test } from 'tap'
import { type Endpoint, type EndpointOptions, type Message, OK, openEndpoint } from '../../am/index.ts'
import { type Driver, drivers } from '../../nic/index.ts'
import { until } from './until.ts'

export interface DriverList {
  readonly name: string
  readonly drivers: readonly (string | Driver)[]
}

/** One more line is one more run of every test over endpoints. Order and time of arrival are not promised. */
export const DRIVER_LISTS: readonly DriverList[] = [
  { name: 'loopback', drivers: ['loopback'] },
  { name: 'shm', drivers: ['shm'] },
]

/** How the endpoints of two processes are connected; programs that tests start know a list by its name. */
export const PROCESS_DRIVER_LISTS: readonly DriverList[] = [{ name: 'shm', drivers: ['shm'] }]

/** Long messages and gets go in parts over these. */
export const COPYING_DRIVER_LISTS: readonly DriverList[] = ['loopback', 'shm'].map(name => ({
  name: `${name} without one-sided access`,
  drivers: [withoutOneSided(drivers.get(name) as Driver)],
}))

/** Why nothing can be tested over these drivers, or false if it can. */
export function skipReason(list: DriverList): string | false {
  for (const one of list.drivers) {
    const availability = (typeof one === 'string' ? drivers.get(one) : one)?.availability()
    if (availability?.usable !== true)
      return `${list.name}: ${availability?.reason ?? 'there is no such driver'}`
  }
  return false
}

/** Runs a test once for each list of drivers. */
export function testOver(
  lists: readonly DriverList[],
  name: string,
  test: (t: Test, world: World) => Promise<void>,
): void {
  for (const list of lists) {
    t.test(`${list.name}: ${name}`, { skip: skipReason(list) }, async t => await test(t, new World(t, list)))
  }
}

/** Opens endpoints over one list of drivers, and closes them when the test ends. */
export class World {
  readonly list: DriverList
  readonly #t: Test

  constructor(t: Test, list: DriverList) {
    this.#t = t
    this.list = list
  }

  async open(options: EndpointOptions = {}): Promise<Endpoint> {
    const endpoint = await openEndpoint({ drivers: this.list.drivers, ...options })
    this.#t.teardown(() => endpoint.close())
    return endpoint
  }

  /** Two endpoints, each of which has mapped the other at destination 0. */
  async openPair(a: EndpointOptions = {}, b: EndpointOptions = {}): Promise<[Endpoint, Endpoint]> {
    const pair: [Endpoint, Endpoint] = [await this.open(a), await this.open(b)]
    await pair[0].map(0, pair[1].name, b.tag)
    await pair[1].map(0, pair[0].name, a.tag)
    return pair
  }
}

/** What a message was, for when its handler has returned. */
export interface Arrival {
  readonly handler: number
  readonly isRequest: boolean
  readonly source: string
  readonly destination: number | undefined
  readonly words: readonly number[]
  readonly payload: Buffer
  readonly offset: number
  readonly reason: string | undefined
}

export function arrivalOf(message: Message): Arrival {
  return {
    handler: message.handler,
    isRequest: message.isRequest,
    source: message.source,
    destination: message.destination,
    words: Array.from({ length: 8 }, (_, i) => message.word(i)),
    payload: message.copy(),
    offset: message.offset,
    reason: message.reason,
  }
}

/** Keeps what arrives for some handlers of an endpoint. */
export function keepArrivals(endpoint: Endpoint, ...handlers: number[]): Arrival[] {
  const arrivals: Arrival[] = []
  for (const handler of handlers) endpoint.setHandler(handler, message => arrivals.push(arrivalOf(message)))
  return arrivals
}

/** Sends as soon as it is not refused any more. */
export async function deliver(endpoint: Endpoint, destination: number, send: () => number): Promise<void> {
  while (send() !== OK) await endpoint.ready(destination)
}

/** Polls endpoints with manual progress until the condition holds. */
export async function pollUntil(
  what: string,
  endpoints: readonly Endpoint[],
  holds: () => boolean,
): Promise<void> {
  await until(what, () => {
    for (const endpoint of endpoints) endpoint.poll()
    return holds()
  })
}

/** The same words, with zeros where none were sent. */
export function eightWords(...words: number[]): number[] {
  return Array.from({ length: 8 }, (_, i) => words[i] ?? 0)
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
