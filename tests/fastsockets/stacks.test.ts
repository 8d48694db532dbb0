/** Stack traces name our functions, and with `--enable-source-maps` our files. */
import t, { type Test } from 'tap'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

async function stackOf(t: Test, ...flags: string[]): Promise<string> {
  const child = new Child(t, program('stacks'), [], relinked({ execArgv: flags }))
  return await child.receive<string>()
}

t.test('functions have their names', async t => {
  const stack = await stackOf(t)
  t.match(stack, /at FastStreamHandle\.\w+ \(.*fastsockets\/relink\/install-[\w-]+\.cjs:\d+/)
})

t.test('source maps lead to files and lines', async t => {
  const stack = await stackOf(t, '--enable-source-maps')
  t.match(stack, /\/fastsockets\/handle\/fast-handle\.ts:\d+:\d+/)
  t.notMatch(stack, /install-[\w-]+\.cjs/)
})
