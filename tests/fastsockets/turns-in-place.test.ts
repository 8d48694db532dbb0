/** Turns that follow each other without the event loop (decision 0112) delay no timer and no I/O for long. */
import t from 'tap'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

interface Told {
  readonly trips: number
  readonly others: number
  readonly timers: number
  readonly immediates: number
  readonly late: number
}

t.test('beside round trips without a pause, TCP, timers and immediates have their turns', async t => {
  for (const options of [{}, relinked()]) {
    const told = await new Child(t, program('turns-in-place'), [], options).receive<Told>()
    t.comment(JSON.stringify(told))
    t.ok(told.trips >= 20_000, 'round trips')
    t.ok(told.others >= 200, 'TCP of the kernel')
    t.ok(told.timers >= 200, 'timers')
    t.ok(told.immediates >= Math.floor(told.trips / 16) - 1, 'immediates')
    t.equal(told.late, 0, 'no answer has overtaken an immediate')
  }
})
