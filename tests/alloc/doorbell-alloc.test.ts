import t from 'tap'
import { drivers } from '../../nic/index.ts'
import { Child } from '../support/child.ts'

/** Node makes a few small objects for each of its callbacks. A read into memory of its own would be thousands. */
const BYTES_MAX = 256
const availability = drivers.get('shm')?.availability()
const skip = availability?.usable ? false : (availability?.reason ?? 'no driver shm')

t.test('a doorbell that rings allocates next to nothing', { skip }, async t => {
  const fixture = new URL('./doorbell-alloc-child.js', import.meta.url)
  const child = new Child(t, fixture, [], { execArgv: ['--expose-gc', '--min-semi-space-size=128'] })
  const { bytes } = await child.receive<{ bytes: number }>()
  t.ok(bytes < BYTES_MAX, `${bytes} bytes a ring`)
})
