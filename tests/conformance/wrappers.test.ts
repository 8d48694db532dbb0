/** The wrappers are complete drivers, also over each other, as long as they have nothing to do. */
import t from 'tap'
import { driverNamed } from '../support/wrapped-drivers.ts'
import { testDriver } from './driver-conformance.ts'

for (const name of [
  'trace:loopback',
  'trace:shm',
  'fault:loopback',
  'fault:shm',
  'fault:trace:fault:loopback',
]) {
  await t.test(name, t => testDriver(t, driverNamed(name)))
}
