/**
 * What programs find in sockets and servers that print, walk, copy and compare them, as loggers and assertions do: the same
 * plain and relinked.
 */
import t from 'tap'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

interface Walk {
  readonly count: number
  readonly thrown: readonly string[]
}

interface Told {
  readonly transports: readonly string[]
  readonly told: Record<string, Record<string, unknown> & { walked?: Walk; foreign?: readonly string[] }>
}

/** What else may be reached from a relinked socket than from a plain one. */
const MORE = 8

t.test('a socket looks like a socket', async t => {
  const plain = await new Child(t, program('shown')).receive<Told>()
  const fast = await new Child(t, program('shown'), [], relinked()).receive<Told>()
  t.strictSame(plain.transports, ['tcp', 'tcp', 'tcp'])
  t.strictSame(fast.transports, ['loopback', 'loopback', 'loopback'])
  for (const [name, { walked, foreign, ...shown }] of Object.entries(plain.told)) {
    t.test(name, async t => {
      const { walked: fastWalked, foreign: fastForeign, ...fastShown } = fast.told[name] ?? {}
      t.strictSame(fastShown, shown)
      if (walked === undefined) return
      t.strictSame(fastWalked?.thrown, [], 'no getter throws')
      // That of a server is Node's own.
      const known = /erver/.test(name) ? foreign : []
      t.strictSame(fastForeign ?? [], known, 'whatever it is asked of')
      t.ok((fastWalked as Walk).count <= walked.count + MORE, `${fastWalked?.count} against ${walked.count}`)
    })
  }
})
