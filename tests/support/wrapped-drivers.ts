/**
 * Drivers by name, wrappers included: `trace:shm` is the tracing wrapper over shm, and a number is a seed. By its name a
 * child program makes the same driver again.
 */
import { type Driver, drivers, faultDriver, traceDriver } from '../../nic/index.ts'
import { wrapDriver } from '../../nic/wrapper/wrapped-driver.ts'
import { openReliable, roomyDriver, settledDriver, spaciousDriver } from './settled-driver.ts'
import { settledNetworkDriver } from './settled-network.ts'

const WRAPPERS: Readonly<Record<string, (inner: Driver, seed: number) => Driver>> = {
  // Of no fault at all: a wrapper must be a complete driver then.
  fault: inner => faultDriver(inner, { seed: 1 }),
  trace: inner => traceDriver(inner, () => {}),
  // Also where nothing needs it.
  reliable: inner =>
    inner.name === 'ethernet'
      ? spaciousDriver(inner)
      : wrapDriver(roomyDriver(inner), `reliable:${inner.name}`, openReliable),
  settled: settledDriver,
}

export function driverNamed(name: string): Driver {
  const [, outer, seed, innerName] = /^([a-z]+)(\d*):(.+)$/.exec(name) ?? []
  if (outer !== undefined && innerName !== undefined) {
    const wrap = WRAPPERS[outer]
    if (wrap !== undefined) return wrap(driverNamed(innerName), Number(seed))
  }
  if (name.startsWith('simulated')) return settledNetworkDriver(name)
  const driver = drivers.get(name)
  if (driver === undefined) throw new Error(`no driver ${name}`)
  return driver
}
