/** The data path of the driver makes no garbage. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { plainEnvironment } from '../../support/child.ts'

const PROGRAM = fileURLToPath(new URL('../programs/verbs-alloc.js', import.meta.url))

t.test('to send a frame and to receive it allocates nothing', async t => {
  const flags = ['--expose-gc', '--min-semi-space-size=128']
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, PROGRAM], {
    env: plainEnvironment(),
  })
  t.comment(stdout)
  const { bytes, control } = JSON.parse(stdout) as { bytes: number; control: number }
  t.ok(control > 8, `an object is seen: ${control} bytes`)
  t.ok(bytes < 1, `${bytes} bytes a frame`)
})
