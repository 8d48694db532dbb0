/** The driver over a plain Ethernet device, for the layers above. The first use loads all of it (ethernet-driver.ts). */
import { createRequire } from 'node:module'
import type { ConnectOptions, Driver, OfferOptions } from '../nic.ts'
import type { SocketHelper } from './socket-helper.ts'

type Rest = typeof import('./ethernet-driver.ts')

const require = createRequire(import.meta.url)
let rest: Rest | undefined

function load(): Rest {
  rest ??= require('./ethernet-driver.ts') as Rest
  return rest
}

export const ethernetDriver: Driver = {
  name: 'ethernet',
  reach: 'network',
  needsAddress: true,
  availability: () => load().availability(),
  offer: (options?: OfferOptions) => load().offer(options),
  connect: (blob: Uint8Array, options?: ConnectOptions) => load().connect(blob, options),
}

/** See `openSocketHelper` in socket-helper.ts. */
export async function openSocketHelper(path: string, users: readonly number[]): Promise<SocketHelper> {
  return await (await import('./socket-helper.ts')).openSocketHelper(path, users)
}
