import t from 'tap'
import { type Driver, drivers } from '../../nic/index.ts'
import { testDriver } from './driver-conformance.ts'

const shm = drivers.get('shm') as Driver

await t.test('nothing but the rings is shared', t => testDriver(t, shm))
await t.test('segments are shared', t => testDriver(t, shm, { sharesMemory: true }))
await t.test('processes are read', t => testDriver(t, shm, { readsPeer: true }))
