/** Very many connections that move at once: what one turn of an event loop does for them is limited. */
import t from 'tap'
import { CHANNEL_MESSAGES_MAX } from '../../../am/progress/turn-budget.ts'
import { SOCKETS_PER_TURN } from '../../../fastsockets/host/in-turns.ts'
import { Child, plainEnvironment } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'

const COUNT = 600
/** ASKED_MAX */
const MOVES_MAX = 64

interface Report {
  readonly moved: number
  readonly most: { readonly moves: number; readonly names: number }
}

t.test(`${COUNT} connections`, async t => {
  const env = { ...plainEnvironment(), FASTSOCKETS_START: 'tcp', FASTSOCKETS_ABLATE: 'price=0,no-direct' }
  const server = new Child(t, program('burst'), ['server'], relinked({ env }))
  const port = await server.receive<number>()
  const client = new Child(t, program('burst'), ['client', String(port), String(COUNT)], relinked({ env }))
  t.equal(await client.receive(), 'open')
  const here = await client.ask<Report>({ run: 'write' })
  const there = await server.ask<Report>({ run: 'report' })
  t.strictSame([here.moved, there.moved], [COUNT, COUNT], 'all move')
  t.ok(here.most.moves <= MOVES_MAX, `${here.most.moves} moves in one turn of the client`)
  t.ok(there.most.moves <= CHANNEL_MESSAGES_MAX, `${there.most.moves} in one of the server`)
  // Beside those that it lists, it looks at each that it moves.
  const namesMax = SOCKETS_PER_TURN + CHANNEL_MESSAGES_MAX
  t.ok(there.most.names <= namesMax, `${there.most.names} names in one turn of the server`)
})
