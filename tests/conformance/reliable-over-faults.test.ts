/** What the reliability layer presents over a network with every fault is as good as any other driver. */
import t from 'tap'
import { seededRandom } from '../support/random.ts'
import { settledDriver } from '../support/settled-driver.ts'
import { driverNamed } from '../support/wrapped-drivers.ts'
import { testDriver } from './driver-conformance.ts'

const FAULTS_MIN = 100

const driver = settledDriver(driverNamed('loopback'), seededRandom(t).word())
await testDriver(t, driver)
for (const [fault, count] of Object.entries(driver.countFaults())) {
  t.ok(count >= FAULTS_MIN, `frames ${fault}: ${count}`)
}
