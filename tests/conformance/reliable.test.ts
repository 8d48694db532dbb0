/** The reliability layer presents a complete driver, also where nothing needs it. */
import t from 'tap'
import { driverNamed } from '../support/wrapped-drivers.ts'
import { testDriver } from './driver-conformance.ts'

for (const name of ['reliable:loopback', 'reliable:shm', 'reliable:fault:trace:loopback']) {
  await t.test(name, t => testDriver(t, driverNamed(name)))
}
