/** Methods of a handle that the state of its socket forbids return what Node's own handle returns, and the socket goes on. */
import t from 'tap'
import { Child } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'

for (const end of ['client', 'server'])
  t.test(`the handle of the ${end}`, async t => {
    const plain = await new Child(t, program('handle-calls'), [end]).receive<{ received: string }>()
    t.equal(plain.received, 'hello')
    t.strictSame(
      await new Child(t, program('handle-calls'), [end], relinked()).receive<{ received: string }>(),
      plain,
    )
  })
