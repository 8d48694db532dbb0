/** Connections that start on TCP and become fast while they are in use, between two processes. */
import t, { type Test } from 'tap'
import { readStatusOf } from '../../../fastsockets/status/read-status.ts'
import { Child, plainEnvironment } from '../../support/child.ts'
import { seededRandom } from '../../support/random.ts'
import { program, relinked } from '../../support/relinked.ts'
import { eventually } from '../../support/until.ts'
import type { Played } from '../programs/promotion.ts'

/** Connections that play at once, and how often. */
const CROWD = 4
const ROUNDS = 12

interface Pair {
  readonly server: Child
  readonly client: Child
  readonly port: number
  readonly httpPort: number
}

type Environment = Readonly<Record<string, string>>

/** `ablate`: when connections move. */
async function start(t: Test, ablate: string, serverEnvironment: Environment = {}): Promise<Pair> {
  const env = { ...plainEnvironment(), FASTSOCKETS_START: 'tcp', FASTSOCKETS_ABLATE: ablate }
  const serverEnv = { ...env, ...serverEnvironment }
  const server = new Child(t, program('promotion'), ['server'], relinked({ env: serverEnv }))
  const { port, httpPort } = await server.receive<Pair>()
  const client = new Child(t, program('promotion'), ['client', String(port)], relinked({ env }))
  await client.receive()
  return { server, client, port, httpPort }
}

for (const ablate of ['price=0', 'price=100'])
  t.test(`a connection is usable at once, and moves, ${ablate}`, async t => {
    const startMs = Date.now()
    const { client, server } = await start(t, ablate)
    const found = await client.ask<Record<string, unknown>>({ run: 'echo' })
    t.match(found, { isRight: true, reason: undefined })
    t.strictSame(found.here, found.there, 'both ends have the names that the kernel gives')
    const seen = found.seen as string[]
    t.match(seen[0], /^tcp (possible|pending)$/)
    t.equal(seen.at(-1), 'shm')
    const [event] = found.events as { bytesOut: number }[]
    t.match(event, { transport: 'shm', role: 'client' })
    t.ok((event?.bytesOut ?? 0) > 0, 'the event says what TCP has carried')
    t.ok((event?.bytesOut ?? 0) < (found.bytesWritten as number), 'and the socket has written more since')
    if (ablate === 'price=100') t.ok((found.n as number) > 16, `not at once, but after ${found.n} messages`)
    const promoted = found.promoted as { atMs: number; bytesOut: number }
    t.equal(promoted.bytesOut, event?.bytesOut, 'as transportOf says')
    t.ok(promoted.atMs >= startMs && promoted.atMs <= Date.now())
    for (const { pid } of [client, server])
      t.match(readStatusOf(pid), [{ isLoaded: true, promoted: 1, demoted: 0 }], 'it is counted')
    const next = await client.ask<Record<string, unknown>>({ run: 'echo' })
    t.match(
      next,
      { isRight: true, n: 0, seen: ['shm'] },
      'the next connection is fast from its first byte on',
    )
  })

t.test('a connection moves that has read while its server was looked for, and is silent then', async t => {
  const { client } = await start(t, 'price=0')
  t.match(await client.ask({ run: 'once' }), { isRight: true })
})

t.test('callbacks keep the asynchronous context in which the program connected', async t => {
  const { client } = await start(t, 'price=0')
  const { seen } = await client.ask<{ seen: string[] }>({ run: 'context' })
  t.strictSame(new Set(seen), new Set(['connecting tcp', 'connecting shm']))
})

t.test('requests of http go on while the wire below them changes', async t => {
  const { client, httpPort } = await start(t, 'price=100')
  const { isRight, seen } = await client.ask<{ isRight: boolean; seen: string[] }>({
    run: 'http',
    port: httpPort,
  })
  t.ok(isRight)
  t.strictSame(
    seen.filter(it => it !== 'tcp listening shm' && it !== 'shm listening tcp'),
    ['tcp listening tcp', 'shm listening shm'],
  )
})

t.test('a server of http that has paused a connection before its move reads on after it', async t => {
  const { client, httpPort } = await start(t, 'price=0')
  t.match(await client.ask({ run: 'pipelined', port: httpPort }), { answers: 64 })
})

for (const after of [0, 3, 300])
  t.test(`TLS over a connection that has exchanged ${after} messages`, async t => {
    const { client } = await start(t, 'price=0')
    const { isRight, before, transport } = await client.ask<Record<string, unknown>>({ run: 'tls', after })
    t.ok(isRight)
    if (after === 300) t.strictSame([before, transport], ['shm', 'shm'])
  })

t.test('a connection returns to TCP, and moves again', async t => {
  const { client } = await start(t, 'price=100')
  const found = await client.ask<Record<string, unknown>>({ run: 'back' })
  t.match(found, { isRight: true, isEven: true })
  const seen = found.seen as string[]
  t.strictSame(seen.slice(0, 3), ['shm', 'tcp', 'shm'])
  const [{ promoted = 0, demoted = 0 } = {}] = readStatusOf(client.pid)
  t.ok(promoted >= 2 && demoted >= 2, `${promoted} moves and ${demoted} returns are counted`)
})

t.test('a socket that reads into a buffer of its program stays on TCP, with the reason', async t => {
  const { client } = await start(t, 'price=0')
  t.match(await client.ask({ run: 'ownBuffer' }), { transport: 'tcp', reason: 'NOT_MOVABLE' })
  const [status] = readStatusOf(client.pid)
  t.equal(status?.promoted, 0)
  t.ok((status?.refusals.NOT_MOVABLE ?? 0) > 0)
})

for (const [ablate, returns] of [
  ['price=0,no-direct', 0],
  ['no-direct,price-seed=', 0],
  ['price=1,no-direct', 1],
] as const)
  t.test(
    `whatever both sides do at once, no byte is lost, doubled or reordered, ${ablate}, ${returns} returns`,
    async t => {
      const random = seededRandom(t)
      const { server, client } = await start(t, ablate.replace(/=$/, `=${random.within(1, 1e6)}`))
      let [moved, returned] = [0, 0]
      for (let round = 0; round < ROUNDS; round++) {
        const breaks = round % 3 === 2 ? 1 : 0
        for (let i = 0; i < CROWD; i++) {
          const [seed, serverSeed] = [random.within(0, 2 ** 31), random.within(0, 2 ** 31)]
          client.send({ run: 'play', id: round * CROWD + i, seed, serverSeed, breaks, returns })
        }
        const here = new Map<number, Played>()
        for (let i = 0; i < CROWD; i++) {
          const played = await client.receive<Played>()
          here.set(played.id, played)
        }
        for (const played of here.values()) {
          if (played.transport === 'shm') moved++
          returned += played.returned
        }
        if (breaks === 1) continue
        for (let i = 0; i < CROWD; i++) {
          const there = await server.receive<Played>()
          check(t, here.get(there.id) as Played, there)
        }
      }
      if (returns === 1) t.ok(returned > CROWD, `${returned} returned to TCP`)
      t.ok(moved > 0 || returns === 1, `${moved} of ${CROWD * ROUNDS} have moved`)
      await eventually('the end of all connections at the server', async () => {
        const { count } = await server.ask<{ count: number }>({})
        return count === 0
      })
    },
  )

function check(t: Test, near: Played, there: Played): void {
  const name = `connection ${near.id}, ${near.transport}`
  t.strictSame(
    [near.end, there.end, near.receivedHash, there.receivedHash, near.bytesRead, there.bytesWritten],
    ['end', 'end', there.sentHash, near.sentHash, there.sent, there.sent],
    name,
  )
  t.equal(near.bytesWritten, near.sent + 10, name)
}

for (const environment of [{ FASTSOCKETS_USE: 'tcp' }, { FASTSOCKETS_DISABLE: '1' }])
  t.test(`a server with ${JSON.stringify(environment)} keeps its connections on TCP`, async t => {
    const { client } = await start(t, 'price=0', environment)
    const found = await client.ask<Record<string, unknown>>({ run: 'echo', count: 300 })
    t.match(found, { isRight: true, n: 300, reason: 'NOT_RELINKED' })
  })

t.test('a connection that has cost little asks for nothing', async t => {
  const { client } = await start(t, 'price=100')
  t.match(await client.ask({ run: 'echo', count: 1 }), { isRight: true, reason: 'STARTED_ON_TCP' })
})

t.test('the client of a server that is killed after the move', async t => {
  const { server, client } = await start(t, 'price=0')
  t.equal(await client.ask({ run: 'untilClosed' }), 'moved')
  await server.kill()
  t.match(await client.receive<{ end: string }>(), { end: /^(end|ECONNRESET)$/ })
})
