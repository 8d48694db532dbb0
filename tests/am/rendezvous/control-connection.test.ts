import { once } from 'node:events'
import net from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { ControlConnection } from '../../../am/rendezvous/control-connection.ts'
import type { ControlMessage } from '../../../am/rendezvous/control-messages.ts'

/** A connection of ours, and the bare socket on its other side. */
async function meet(t: Test): Promise<{ connection: ControlConnection; peer: net.Socket }> {
  const server = net.createServer().listen({ path: `\0control-${process.pid}-${performance.now()}` })
  const peer = net.connect({ path: server.address() as string })
  const [[socket]] = await Promise.all([once(server, 'connection'), once(peer, 'connect')])
  server.close()
  t.teardown(() => peer.destroy())
  t.teardown(() => socket.destroy())
  return { connection: new ControlConnection(socket), peer }
}

/** What the peer says, heard without a turn of the event loop. */
async function hear(t: Test, said: string): Promise<{ heard: ControlMessage[]; ends: number }> {
  const { connection, peer } = await meet(t)
  const heard: ControlMessage[] = []
  let ends = 0
  connection.listen({
    handleControl: message => void heard.push(message),
    handleControlEnd: () => void ends++,
  })
  peer.write(said)
  const endMs = performance.now() + 100
  while (performance.now() < endMs && heard.length + ends === 0) connection.checkNow()
  const found = { heard: [...heard], ends }
  peer.destroy()
  await connection.over
  t.equal(ends, 1, 'the end is told once')
  return found
}

t.test('a message is heard without the event loop', async t => {
  t.strictSame(await hear(t, '{"op":"bye"}\n'), { heard: [{ op: 'bye' }], ends: 0 })
})

t.test('what is no message ends the connection at once, and nothing behind it is heard', async t => {
  t.strictSame(await hear(t, 'nonsense\n{"op":"bye"}\n'), { heard: [], ends: 1 })
})

t.test('a peer that goes on talking does not keep its listener', async t => {
  const ENOUGH = 1000
  const { connection, peer } = await meet(t)
  let heard = 0
  // There is always more to receive, and the listener gets it while the peer sends.
  const say = (): void => void peer.write('{"op":"bye"}\n')
  connection.listen({
    handleControl: () => {
      if (++heard < ENOUGH) say()
    },
    handleControlEnd: () => {},
  })
  say()
  connection.checkNow()
  t.ok(heard > 0 && heard < ENOUGH, `${heard} messages at once`)
  for (let looks = 0; looks < ENOUGH; looks++) connection.checkNow()
  t.equal(heard, ENOUGH, 'and all of them in the end')
})

const TURN_MAX = 256
const MANY = 5000

t.test(
  'a peer that says a great deal at once is heard a turn at a time, and in the end altogether',
  async t => {
    const { connection, peer } = await meet(t)
    let heard = 0
    let before = 0
    let most = 0
    connection.listen({ handleControl: () => void heard++, handleControlEnd: () => {} })
    peer.write('{"op":"bye"}\n'.repeat(MANY))
    while (heard < MANY && !peer.destroyed) {
      await nextTurn()
      most = Math.max(most, heard - before)
      before = heard
    }
    t.equal(heard, MANY)
    // Those that have just come, and those that have waited.
    t.ok(most <= 2 * TURN_MAX, `${most} in one turn`)
  },
)

t.test('also without the event loop, and in order', async t => {
  const { connection, peer } = await meet(t)
  const heard: number[] = []
  connection.listen({
    handleControl: message => void heard.push((message as { id: number }).id),
    handleControlEnd: () => {},
  })
  const ids = Array.from({ length: MANY }, (_, id) => id)
  peer.write(ids.map(id => `{"op":"map","id":${id},"tag":"0000000000000000"}\n`).join(''))
  // Some come by the event loop, the rest is looked for.
  while (heard.length === 0) await nextTurn()
  for (let looks = 0; looks < MANY; looks++) connection.checkNow()
  while (heard.length < MANY) await nextTurn()
  t.strictSame(heard, ids)
})

t.test('what a peer has said before it went is heard, however much it is', async t => {
  const { connection, peer } = await meet(t)
  let heard = 0
  connection.listen({ handleControl: () => void heard++, handleControlEnd: () => t.equal(heard, MANY) })
  peer.end('{"op":"bye"}\n'.repeat(MANY))
  await connection.over
  t.equal(heard, MANY)
})
