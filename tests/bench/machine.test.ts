/** What is noted of the machine before anything is measured. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import t from 'tap'
import { describeMachine } from '../../bench/machine.ts'

const BUSY = `process.stdout.write('on'); for (;;);`

t.test('a core that is busy now is seen, whatever the last minute was like', async t => {
  const busy = spawn(process.execPath, ['-e', BUSY], { stdio: ['ignore', 'pipe', 'ignore'] })
  t.teardown(() => void busy.kill('SIGKILL'))
  await once(busy.stdout, 'data')
  const { busyCoresBefore = 0, isQuiet } = await describeMachine()
  t.notOk(isQuiet)
  t.ok(busyCoresBefore > 0.25 && busyCoresBefore <= availableParallelism() + 0.1, `${busyCoresBefore} cores`)
})
