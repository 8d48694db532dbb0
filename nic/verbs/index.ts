/** The driver between hosts, for the layers above. The first use of a device loads all of it (verbs-driver.ts). */
import { createRequire } from 'node:module'
import type { ConnectOptions, Driver, OfferOptions } from '../nic.ts'
import { deviceNames } from './kernel-devices.ts'
import type { VerbsUse } from './verbs-driver.ts'

export type { VerbsUse } from './verbs-driver.ts'

type Rest = typeof import('./verbs-driver.ts')

const require = createRequire(import.meta.url)
let rest: Rest | undefined

function load(): Rest {
  rest ??= require('./verbs-driver.ts') as Rest
  return rest
}

export const verbsDriver: Driver = {
  name: 'verbs',
  reach: 'network',
  availability: () => load().availability(),
  offer: (options?: OfferOptions) => load().offer(options),
  connect: (blob: Uint8Array, options?: ConnectOptions) => load().connect(blob, options),
}

/** True if the kernel has a device, usable or not; loads and opens nothing. */
export function hasDevice(): boolean {
  return deviceNames().length > 0
}

/** Counters of the driver in this process; undefined where it cannot be used. */
export function verbsCounters(): ReturnType<Rest['verbsCounters']> {
  return load().verbsCounters()
}

/** Counters and pinned memory; undefined while this process has not used the driver. Loads and opens nothing. */
export function verbsUse(): VerbsUse | undefined {
  return rest?.verbsUse()
}

/** The device in one line, for people; undefined if there is none. */
export function describeDevice(): string | undefined {
  return load().describeDevice()
}

/** The device's own address in its network, as text, if it has one: that of an RoCE device's GID, or of an iWARP device. */
export function deviceAddress(): string | undefined {
  return hasDevice() ? load().deviceAddress() : undefined
}
