/** A part of `npm run test:containers`: suites whose two processes are in two containers. */
import t from 'tap'
import { makeApart } from '../../support/apart.ts'
import { noContainers } from '../../support/containers.ts'

const skip = noContainers()
if (skip) t.comment(`SKIPPED: suites in two containers: ${skip}`)

t.test('one test each of a driver, of a package, and of a service', { skip }, async t => {
  const run = makeApart(t)
  for (const [file, names] of [
    ['conformance/shm-two-processes', /sleeps for room/],
    ['interop/interop', /^ws$/],
    ['am/rpc/ports', /birpc/],
  ] as const) {
    const { status, stdout } = run(file, names)
    t.equal(status, 0, file)
    t.match(stdout, /^# \{ total: \d+, pass: [1-9]/m, 'and something was tested')
    if (status !== 0) t.comment(stdout)
  }
})
