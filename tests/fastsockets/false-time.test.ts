/** Tests of programs often replace timers and clocks. Sockets go on as if nothing were: Node's do. */
import t, { type Test } from 'tap'
import { Child } from '../support/child.ts'
import { program, relinked } from '../support/relinked.ts'

const RECEIVED = 3_000_005
/** On an overloaded machine a greeting may come too late; then it is TCP, rightly. */
const TOO_LATE = 'tcp SILENT'
const TRIES_MAX = 5

interface Report {
  readonly wire: string
  readonly received: number
}

async function report(t: Test, makeClient: () => Child): Promise<Report> {
  for (let tries = 1; ; tries++) {
    const found = await makeClient().receive<Report>()
    if (found.wire !== TOO_LATE || tries === TRIES_MAX) return found
    t.comment('a greeting came too late')
  }
}

for (const [server, wire] of [
  [relinked(), 'shm'],
  [{}, 'tcp NOT_RELINKED'],
] as const) {
  t.test(`two processes whose timers stand still: ${wire}`, async t => {
    const listener = new Child(t, program('false-time'), ['serve'], server)
    const { port } = await listener.receive<{ port: number }>()
    const client = (): Child => new Child(t, program('false-time'), ['call', String(port)], relinked())
    t.strictSame(await report(t, client), { wire, received: RECEIVED })
  })
}

t.test('one process whose timers stand still', async t => {
  const client = new Child(t, program('false-time'), ['both'], relinked())
  t.strictSame(await client.receive(), { wire: 'loopback', received: RECEIVED })
})
