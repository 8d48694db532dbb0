/** Where messages come seldom a thread does not spin for them: it sleeps until the doorbell rings. */
import t from 'tap'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

/** Enough to learn that spinning does not pay. */
const FIRST = 20
const ROUND_TRIPS = 200
/** Turns that find nothing, of a thread that spins for 0.1 ms each time: dozens a message. */
const EMPTY_PER_MESSAGE_MAX = 2

interface Counts {
  readonly emptyTurns: number
  readonly messages: number
}

t.test('a round trip every few milliseconds costs hardly an empty turn, on both sides', async t => {
  const [server, client] = [0, 1].map(() => new Child(t, program('seldom'), [], relinked())) as [Child, Child]
  const { port } = await server.receive<{ port: number }>()
  await client.receive()
  await client.ask({ port, roundTrips: FIRST })
  const before = [await server.ask<Counts>({}), await client.ask<Counts>({})]
  await client.ask({ roundTrips: ROUND_TRIPS })
  const after = [await server.ask<Counts>({}), await client.ask<Counts>({})]
  for (const [i, side] of ['server', 'client'].entries()) {
    const { emptyTurns, messages } = after[i] as Counts
    const handled = messages - (before[i] as Counts).messages
    const empty = emptyTurns - (before[i] as Counts).emptyTurns
    t.ok(handled >= ROUND_TRIPS, `the ${side} handled ${handled} messages`)
    t.ok(empty <= EMPTY_PER_MESSAGE_MAX * handled, `${empty} empty turns of the ${side}`)
  }
})
