/** Two unmodified packages that speak UDP; `npm run test:udp` has more of them (udp-packages.ts). */
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { CHECKOUT } from '../docs/application.ts'
import { faultsOf } from './udp-packages.ts'

for (const name of ['dns2', 'syslog-client'])
  t.test(name, async t => {
    const folder = t.testdir({})
    symlinkSync(join(CHECKOUT, 'node_modules'), join(folder, 'node_modules'))
    t.strictSame(await faultsOf(name, folder), [])
  })
