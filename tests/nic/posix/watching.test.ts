import t from 'tap'
import { loadLibc } from '../../../nic/posix/libc.ts'
import { Child } from '../../support/child.ts'

const skip = loadLibc().reason ?? false

t.test('workers may be stopped while a descriptor that they watch is readable', { skip }, async t => {
  const child = new Child(t, new URL('./watching-child.js', import.meta.url))
  t.same(await child.receive(), { stopped: 20 })
  t.same(await child.exited, { code: 0, signal: null })
})
