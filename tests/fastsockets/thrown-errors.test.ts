/** What listeners throw reaches the program's handler in the context in which it does plain: test runners look there. */
import t from 'tap'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

t.test('errors of listeners belong to whoever made the socket', async t => {
  const plain = await new Child(t, program('thrown')).receive<string[]>()
  t.equal(plain.length, 4)
  t.strictSame(await new Child(t, program('thrown'), [], relinked()).receive<string[]>(), plain)
})
