/** A process that writes random words into the ring again and again hurts itself, and nobody else. */
import { once } from 'node:events'
import t from 'tap'
import net, { type AddressInfo, transportOf } from '../../fastsockets/index.ts'
import { Child } from '../support/child.ts'
import { liveMemory } from '../support/garbage.ts'
import { seededRandom } from '../support/random.ts'
import { program, relinked } from '../support/relinked.ts'
import { descriptorCount } from '../support/resources.ts'
import { eventually, until } from '../support/until.ts'

const fixture = new URL('./scribbling-child.js', import.meta.url)
const ROUNDS = 100
const GROWTH_MAX = 8 * 2 ** 20

t.test(`${ROUNDS} connections whose client writes random words into the ring`, async t => {
  const violations = new Map<string, number>()
  const server = net.createServer(socket => {
    socket.on('error', error => {
      const text = String((error.cause as Error | undefined)?.message).replace(/-?\d+/g, 'N')
      violations.set(text, (violations.get(text) ?? 0) + 1)
    })
    socket.on('data', data => socket.write(data))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  const { port } = server.address() as AddressInfo

  // An honest connection from this process to another, which goes on all the while.
  const echo = new Child(t, program('server'), ['echo'], relinked())
  const honest = net.connect((await echo.receive<{ port: number }>()).port, '127.0.0.1')
  await once(honest, 'connect')
  let answers = 0
  honest.on('data', data => {
    answers += data.length
    honest.write(data)
  })
  honest.write('x')

  const attack = async (seed: number, rounds: number): Promise<Record<string, number>> => {
    const child = new Child(t, fixture, [String(port), String(seed), String(rounds)], relinked())
    const wires: Record<string, number> = {}
    for (let round = 0; round < rounds; round++) {
      const { wire } = await child.receive<{ wire: string }>()
      wires[wire] = (wires[wire] ?? 0) + 1
    }
    t.match(await child.end(), { code: 0 })
    return wires
  }
  const random = seededRandom(t)
  // The first brings what stays.
  await attack(random.word(), 5)
  const [memory, descriptors] = [await liveMemory(), descriptorCount()]
  const wires = await attack(random.word(), ROUNDS)
  t.ok((wires.shm ?? 0) > ROUNDS / 2, JSON.stringify(wires))
  t.ok(violations.size > 0, JSON.stringify([...violations]))
  await eventually('the descriptors to go', () => descriptorCount() <= descriptors)
  const growth = (await liveMemory()) - memory
  t.ok(growth < GROWTH_MAX, `${growth} bytes more`)
  const before = answers
  await until('the honest to go on', () => answers > before)
  t.equal(transportOf(honest).transport, 'shm')
  honest.destroy()
})
