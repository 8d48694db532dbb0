/** The data path of the driver makes no garbage. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { plainEnvironment } from '../../support/child.ts'

interface Report {
  readonly bytes: number
  readonly control: number
  /** Of the shared queue. */
  readonly granted: number
}

const PROGRAM = fileURLToPath(new URL('../programs/verbs-alloc.js', import.meta.url))

for (const receives of ['own', 'shared']) {
  t.test(`to send a frame and to receive it allocates nothing: ${receives} receives`, async t => {
    const flags = ['--expose-gc', '--min-semi-space-size=128']
    const { stdout } = await promisify(execFile)(process.execPath, [...flags, PROGRAM, receives], {
      env: plainEnvironment(),
    })
    t.comment(stdout)
    const { bytes, control, granted } = JSON.parse(stdout) as Report
    t.ok(control > 8, `an object is seen: ${control} bytes`)
    t.ok(bytes < 1, `${bytes} bytes a frame`)
    t.equal(granted > 0, receives === 'shared')
  })
}
