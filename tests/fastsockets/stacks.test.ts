/** The stack of an error names the functions of the program that wait, as it does plain. */
import t from 'tap'
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
