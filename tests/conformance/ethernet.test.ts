/** The driver ethernet at the loopback device, below the reliability layer: it loses frames that no receive is posted for. */
import t from 'tap'
import { driverNamed } from '../support/wrapped-drivers.ts'
import { testDriver } from './driver-conformance.ts'

await testDriver(t, driverNamed('reliable:ethernet'))
