/**
 * The simulated driver over hardware that keeps order and loses nothing: without costs, with short frames, with one-sided
 * access. What loses frames is tested below the reliability layer, in tests/simulation.
 */
import t from 'tap'
import { driverNamed } from '../support/wrapped-drivers.ts'
import { testDriver } from './driver-conformance.ts'

for (const hardware of ['ideal', 'myrinet-lanai', 'clan']) {
  await t.test(hardware, t => testDriver(t, driverNamed(`simulated-${hardware}`)))
}
