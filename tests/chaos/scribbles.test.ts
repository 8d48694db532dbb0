/** A process that writes random words into the ring again and again hurts itself, and no other process. */
import { once } from 'node:events'
import t from 'tap'
import net, { type AddressInfo, transportOf } from '../../fastsockets/index.ts'
import { Child } from '../support/child.ts'
import { liveMemory } from '../support/garbage.ts'
import { seededRandom } from '../support/random.ts'
import { program, relinked } from '../support/relinked.ts'
import { descriptorCount } from '../support/resources.ts'
import { StallMeter } from '../support/stall-meter.ts'
import { eventually, until } from '../support/until.ts'

const fixture = new URL('./scribbling-child.js', import.meta.url)
/** The same words are written so often, for what the machine does meanwhile is not the same. */
const RUNS = 3
const ROUNDS_EACH = 34
const ROUNDS = RUNS * ROUNDS_EACH
/**
 * The longest that this process, which is attacked, may stand still. It catches words of the ring that become the length of
 * a loop, a copy or an allocation, a ring that is read on and on, and what is thrown and caught a thousand times over.
 */
const STALL_MAX_MS = 10
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

  const wires: Record<string, number> = {}
  const meter = new StallMeter()
  /** The least of the runs. */
  let turnMs = Number.POSITIVE_INFINITY
  const attack = async (seed: number, rounds: number): Promise<void> => {
    const child = new Child(t, fixture, [String(port), String(seed), String(rounds)], relinked())
    for (let round = 0; round < rounds; round++) {
      const { wire } = await child.receive<{ wire: string }>()
      wires[wire] = (wires[wire] ?? 0) + 1
      // To start a process takes this one longer than anything that is looked for.
      if (round === 0) meter.begin()
    }
    turnMs = Math.min(turnMs, meter.end())
    t.match(await child.end(), { code: 0 })
  }
  const random = seededRandom(t)
  // The first brings what stays.
  await attack(random.word(), 5)
  for (const wire in wires) wires[wire] = 0
  const [memory, descriptors] = [await liveMemory(), descriptorCount()]
  const seed = random.word()
  turnMs = Number.POSITIVE_INFINITY
  for (let run = 0; run < RUNS; run++) await attack(seed, ROUNDS_EACH)
  t.ok(turnMs < STALL_MAX_MS, `this process stood still for ${turnMs.toFixed(2)} ms at most`)
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
