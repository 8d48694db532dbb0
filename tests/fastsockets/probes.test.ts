/** Clients that connect and leave at once: a server's sockets end in the same ways, plain and relinked. */
import t, { type Test } from 'tap'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'
import { eventually } from '../support/until.ts'

const PROBES = 200
/** A kind of ending that is rarer depends on how the two processes are scheduled. */
const SELDOM = PROBES / 20

interface Mix {
  readonly kinds: Readonly<Record<string, number>>
  readonly open: number
  readonly transport: string
}

async function mixOf(t: Test, how: string, says: string, isRelinked: boolean): Promise<Mix> {
  const options = isRelinked ? relinked() : {}
  const server = new Child(t, program('probed'), [how], options)
  const { port } = await server.receive<{ port: number }>()
  const client = new Child(t, program('probing'), [String(port), String(PROBES), says], options)
  await client.receive()
  return eventually('all endings', async () => {
    const mix = await server.ask<Mix>({})
    const ended = Object.values(mix.kinds).reduce((sum, count) => sum + count, 0)
    // TCP may leave one that is never read open, when bytes and a reset cross.
    return ended >= PROBES - SELDOM && (!isRelinked || mix.open === 0) && mix
  })
}

function commonest({ kinds }: Mix): string | undefined {
  return Object.entries(kinds).sort(([, a], [, b]) => b - a)[0]?.[0]
}

for (const how of ['silent', 'one', 'two', 'later', 'much']) {
  for (const says of ['', 'a byte']) {
    t.test(`a server that greets: ${how}; a client that says ${says || 'nothing'}`, async t => {
      const plain = await mixOf(t, how, says, false)
      const fast = await mixOf(t, how, says, true)
      t.comment(JSON.stringify({ plain: plain.kinds, fast: fast.kinds }))
      t.strictSame([plain.transport, fast.transport], ['tcp', 'shm'])
      t.equal(commonest(fast), commonest(plain))
      for (const [kind, count] of Object.entries(fast.kinds))
        if (count > SELDOM) t.ok(plain.kinds[kind], `'${kind}' comes over TCP, too`)
    })
  }
}
