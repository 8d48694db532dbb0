/** What tests start ends with the test's process, however that ends: an orphan would keep its ports, and the pipe of standard output. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { Child } from './child.ts'
import { eventually } from './until.ts'

const PARENT = new URL('./deathbound-child.js', import.meta.url)

const ENDS: Readonly<Record<string, (parent: Child) => void>> = {
  'is killed': parent => void parent.process.kill('SIGKILL'),
  'is terminated': parent => void parent.process.kill('SIGTERM'),
  'leaves without its teardown': parent => parent.send({ do: 'exit' }),
}

for (const [how, end] of Object.entries(ENDS)) {
  t.test(`a child ends when the process of its test ${how}`, async t => {
    const parent = new Child(t, PARENT)
    const pid = await parent.receive<number>()
    t.teardown(() => isThere(pid) && process.kill(pid, 'SIGKILL'))
    t.ok(isThere(pid))
    end(parent)
    await eventually('the end of the child', () => !isThere(pid))
  })
}

/** An ended process may still wait for its new parent to collect it. */
function isThere(pid: number): boolean {
  try {
    return !/^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
