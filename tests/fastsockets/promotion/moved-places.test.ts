/** Connections that move in workers: each to the process or thread that has its TCP connection, whoever answers the hashed port. */
import t from 'tap'
import { Child, plainEnvironment } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'
import type { Moved } from '../programs/moved-places.ts'

const env = { ...plainEnvironment(), FASTSOCKETS_START: 'tcp', FASTSOCKETS_ABLATE: 'price=0,no-direct' }

for (const [name, place, workerCount, role] of [
  ['a cluster whose primary accepts', 'rr', 2, 'client'],
  ['a cluster whose workers share a descriptor', 'kernel', 2, 'client'],
  ['worker threads on both sides', 'thread', 1, 'client-thread'],
] as const)
  t.test(name, async t => {
    const server = new Child(t, program('moved-places'), [place], relinked({ env }))
    const port = await server.receive<number>()
    const client = new Child(t, program('moved-places'), [role, String(port)], relinked({ env }))
    const { transports, answers } = await client.receive<Moved>()
    t.strictSame([...new Set(transports)], ['shm'], 'all have moved')
    for (const answer of answers)
      t.match(answer, /^\d+ \d+$/, 'one worker has answered, before and after the move')
    t.ok(new Set(answers).size <= workerCount)
    if (place === 'rr') t.equal(new Set(answers).size, workerCount, 'connections of every worker have moved')
  })
