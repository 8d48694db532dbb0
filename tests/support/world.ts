/** Tests of endpoints, once for each list of drivers that endpoints are to work over. */
import t, { type Test } from 'tap'
import { type Endpoint, type EndpointOptions, openEndpoint } from '../../am/index.ts'
import { type DriverList, LISTENING, skipReason } from './driver-lists.ts'

/** Runs a test once for each list of drivers, or skips it for a reason. */
export function testOver(
  lists: readonly DriverList[],
  name: string,
  test: (t: Test, world: World) => Promise<void>,
  reason: string | false = false,
): void {
  for (const list of lists) {
    t.test(
      `${list.name}: ${name}`,
      { skip: reason || skipReason(list) },
      async t => await test(t, new World(t, list)),
    )
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
    const endpoint = await openEndpoint({ drivers: this.list.drivers, ...LISTENING, ...options })
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
