/** The verbs driver keeps every promise of the contract, over the kernel's own software RDMA device. */
import t from 'tap'
import { verbsCounters } from '../../../nic/index.ts'
import { testDriver } from '../../conformance/driver-conformance.ts'
import { settledVerbs } from '../settled-verbs.ts'

await testDriver(t, settledVerbs())
t.comment(JSON.stringify(verbsCounters()))
