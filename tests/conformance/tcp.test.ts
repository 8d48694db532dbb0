import t from 'tap'
import { type Driver, drivers } from '../../nic/index.ts'
import { testDriver } from './driver-conformance.ts'

await testDriver(t, drivers.get('tcp') as Driver)
