/** Node's lists of what keeps a process alive are the same, plain and relinked. */
import t, { type Test } from 'tap'
import { Child } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'

const MODES = { plain: {}, relinked: relinked() }

async function told(t: Test, child: Child): Promise<object> {
  const open = await child.receive<object>()
  const later = await child.ask<object>({})
  t.match(await child.end(), { code: 0, signal: null })
  return { ...open, ...later }
}

t.test('in one process', async t => {
  const plain = await told(t, new Child(t, program('active'), ['both'], MODES.plain))
  t.match(plain, {
    open: { handles: ['Server', 'Socket', 'Socket'] },
    unreferenced: { handles: ['Server', 'Socket'] },
    closed: { handles: ['Server'] },
  })
  t.strictSame(await told(t, new Child(t, program('active'), ['both'], MODES.relinked)), plain)
})

t.test('in two processes', async t => {
  const seen: object[] = []
  for (const options of Object.values(MODES)) {
    const server = new Child(t, program('active'), ['serve'], options)
    const { port } = await server.receive<{ port: number }>()
    const client = new Child(t, program('active'), ['call', String(port)], options)
    const [atClient, open] = [await told(t, client), await server.receive<object>()]
    seen.push({ atClient, atServer: { ...open, ...(await server.ask<object>({})) } })
    t.match(await server.end(), { code: 0, signal: null })
  }
  t.match(seen[0], { atClient: { open: { handles: ['Socket'] }, unreferenced: { handles: [] } } })
  t.strictSame(seen[1], seen[0])
})
