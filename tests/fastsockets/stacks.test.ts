/** The stack of an error names the functions of the program that wait, as it does plain. */
import t from 'tap'
import { raiseStackLimit, restoreStackLimit } from '../../fastsockets/host/stack-limit.ts'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

const ALL = ['innermost', 'inner', 'outer', 'outermost']

t.test('errors name those who waited for data', async t => {
  for (const options of [{}, relinked()])
    t.strictSame(await new Child(t, program('stacks'), [], options).receive(), [ALL, ALL, 10])
})

t.test('no stacks are made for who wants none', async t => {
  for (const options of [
    { execArgv: ['--stack-trace-limit=0'] },
    relinked({ execArgv: ['--stack-trace-limit=0'] }),
  ])
    t.strictSame(await new Child(t, program('stacks'), [], options).receive(), [[], [], 0])
})

t.test('a limit that the program sets within a turn stays', t => {
  const before = Error.stackTraceLimit
  t.teardown(() => {
    Error.stackTraceLimit = before
  })
  raiseStackLimit()
  t.ok(Error.stackTraceLimit > before)
  Error.stackTraceLimit = 50
  restoreStackLimit()
  t.equal(Error.stackTraceLimit, 50)
  t.end()
})

t.test('a limit that is frozen stays, in a turn and before one', t => {
  const before = Error.stackTraceLimit
  const freeze = (writable: boolean): void => {
    Object.defineProperty(Error, 'stackTraceLimit', { writable })
  }
  t.teardown(() => {
    freeze(true)
    Error.stackTraceLimit = before
  })
  raiseStackLimit()
  const raised = Error.stackTraceLimit
  freeze(false)
  restoreStackLimit()
  t.equal(Error.stackTraceLimit, raised)
  raiseStackLimit()
  t.equal(Error.stackTraceLimit, raised)
  t.end()
})
