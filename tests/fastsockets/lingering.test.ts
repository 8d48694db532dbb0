/** What a program wrote before it destroyed the socket arrives, as what TCP's kernel has taken does. */
import t from 'tap'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

t.test('bytes that were written before a socket was destroyed arrive', async t => {
  const plain = await new Child(t, program('destroyed')).receive<number[][]>()
  t.strictSame(plain, [
    [100, 300_000, 1_000_000],
    [100, 300_000, 1_000_000],
  ])
  t.strictSame(await new Child(t, program('destroyed'), [], relinked()).receive<number[][]>(), plain)
})
