/** Halves of the bench that poll, and so never hear that their standard input has ended, go with whoever has started them. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { Child } from '../support/child.ts'
import { eventually } from '../support/until.ts'

const MEASURING = new URL('./measuring.js', import.meta.url)

for (const name of ['nic-shm', 'am-polling', 'raw-polling']) {
  t.test(name, async t => {
    const measuring = new Child(t, MEASURING, [name])
    const halves = await measuring.receive<number[]>()
    t.teardown(() => {
      for (const pid of halves.filter(isThere)) process.kill(pid, 'SIGKILL')
    })
    t.equal(halves.filter(isThere).length, 2)
    measuring.process.kill('SIGKILL')
    await eventually('the end of both halves', () => !halves.some(isThere))
    t.pass('both are gone')
  })
}

/** Ended, it may still have to be waited for: by whom, the machine decides. */
function isThere(pid: number): boolean {
  try {
    return !/^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
