/** What FASTSOCKETS_ABLATE switches off makes programs slower, and nothing else. */
import t, { type Test } from 'tap'
import { Child, plainEnvironment } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

const TOTAL = 3_000_000

async function mirrored(t: Test, ablate: string): Promise<{ outcome: object; stderr: string }> {
  const env = { ...plainEnvironment(), FASTSOCKETS_ABLATE: ablate }
  const server = new Child(t, program('mirror'), ['server'], relinked({ env }))
  const { port } = await server.receive<{ port: number }>()
  const client = new Child(t, program('mirror'), ['client', String(port), String(TOTAL)], relinked({ env }))
  const outcome = await client.receive<{ sha256Sent: string }>()
  t.match(outcome, { transport: 'shm', received: TOTAL, sha256Received: outcome.sha256Sent }, ablate)
  return { outcome, stderr: client.stderr }
}

t.test('streams are what they were without a technique', async t => {
  const ablations = ['no-posting,no-delayed-acks', 'spin-us=0,ring=65536']
  const runs = await Promise.all(ablations.map(ablate => mirrored(t, ablate)))
  for (const { stderr } of runs) t.equal(stderr, '')
})

t.test('what makes no sense is a warning, and ablates nothing', async t => {
  const { stderr } = await mirrored(t, 'everything,ring=huge,no-posting=1,constructor')
  for (const item of ['everything', 'ring=huge', 'no-posting=1', 'constructor']) {
    t.match(stderr, `FASTSOCKETS_ABLATE: "${item}" is no ablation`)
  }
})
