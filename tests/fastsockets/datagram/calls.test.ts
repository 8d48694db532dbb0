/** Each call of `node:dgram` returns and reports the same, whatever carries the datagrams. */
import t from 'tap'
import type { DatagramPair } from '../../../fastsockets/datagram/udp-notes.ts'
import { Child } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'

interface Told {
  readonly journal: readonly unknown[]
  readonly pairs: readonly DatagramPair[]
}

t.test('a program that makes all calls, plain and relinked', async t => {
  const echo = new Child(t, program('datagrams'), ['echo', 'udp4', '127.0.0.1'], relinked())
  const { port } = await echo.receive<{ port: number }>()
  const plain = new Child(t, program('datagram-calls'), [String(port)])
  const fast = new Child(t, program('datagram-calls'), [String(port), '30'], relinked())
  const [expected, seen] = [await plain.receive<Told>(), await fast.receive<Told>()]
  t.strictSame(seen.journal, expected.journal)
  t.match(seen.pairs, [{ port, sends: 'shm', receives: 'shm' }], 'its datagrams left the kernel')
  for (const child of [plain, fast]) t.strictSame(await child.end(), { code: 0, signal: null })
})
