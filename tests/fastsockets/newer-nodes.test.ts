/** What newer Nodes do, relinked programs do on them, too. */
import t, { type Test } from 'tap'
import { Child } from '../support/child.ts'
import { BOUND_SOCKETS, MOVED_SERVERS, TYPE_OF_SERVICE, testIf } from '../support/newer-node.ts'
import { program, relinked } from '../support/relinked.ts'

interface Seen {
  readonly transport: string
  readonly log: readonly string[]
}

/** A scenario in programs/newer-nodes.ts sees the same, plain and relinked. */
async function isTheSame(t: Test, scenario: string, transport = 'loopback'): Promise<void> {
  const plain = await new Child(t, program('newer-nodes'), [scenario]).receive<Seen>()
  const fast = await new Child(t, program('newer-nodes'), [scenario], relinked()).receive<Seen>()
  t.equal(fast.transport, transport)
  t.ok(plain.log.length > 0, 'something happened')
  t.same(fast.log, plain.log)
  t.comment(plain.log.join(', '))
}

t.test('an agent of http hears of the reset of an idle socket as it does of one over TCP', t =>
  isTheSame(t, 'idleReset'),
)

t.test('so does one of https', t => isTheSame(t, 'idleTlsReset'))

t.test('what listeners throw goes to the domain of their socket', t => isTheSame(t, 'domain'))

t.test('and to a program that has asked to capture it', t => isTheSame(t, 'captured'))

testIf(TYPE_OF_SERVICE, 'a type of service is kept as the kernel keeps it', t =>
  isTheSame(t, 'typeOfService'),
)

testIf(BOUND_SOCKETS, 'a socket over a bound unix path connects again when that is gone', t =>
  isTheSame(t, 'boundPath', 'none'),
)

testIf(BOUND_SOCKETS, 'a socket over a bound port connects again when that is gone', t =>
  isTheSame(t, 'boundPort', 'none'),
)

testIf(
  MOVED_SERVERS,
  'a server that is moved to a worker is fast there, and takes its hashed port along',
  async t => {
    const child = new Child(t, program('moved-server'), [], relinked())
    const { port, hashedPorts } = await child.receive<{ port: number; hashedPorts: number[] }>()
    t.equal(hashedPorts.length, 2)
    t.equal(hashedPorts[1], hashedPorts[0])
    const client = new Child(t, program('client'), [String(port)], relinked())
    t.match(await client.receive(), { connected: 'shm' })
    t.match(await child.receive(), { thread: 1, transport: 'shm' })
  },
)
