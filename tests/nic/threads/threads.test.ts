/** Interfaces that belong to worker threads, and workers that are stopped at any moment. */
import t, { type Test } from 'tap'
import { drivers } from '../../../nic/index.ts'
import { Child, type Exit } from '../../support/child.ts'
import { seededRandom } from '../../support/random.ts'

const fixture = new URL('./threads-child.js', import.meta.url)
const availability = drivers.get('shm')?.availability()
const skip = availability?.usable ? false : (availability?.reason ?? 'no driver shm')
const GOOD: Exit = { code: 0, signal: null }
/** Without the test runner's loaders, which every worker would load, too. */
const PLAIN = { execArgv: [] }
/** Processes that end while their workers load koffi. */
const EXITS = 5

/** What comes of a scenario. However slow the machine is, there must be progress from time to time. */
async function run(t: Test, scenario: string): Promise<object> {
  const child = new Child(t, fixture, [scenario, String(seededRandom(t).seed)], PLAIN)
  let report: object
  do report = await child.receive<object>()
  while ('progress' in report)
  t.strictSame(await child.end(), GOOD, child.stderr)
  return report
}

t.test('the main thread and a worker exchange frames, asleep in between', { skip }, async t => {
  t.strictSame(await run(t, 'main-and-worker'), { wrong: 0 })
})

t.test('two workers exchange frames, asleep in between', { skip }, async t => {
  t.strictSame(await run(t, 'two-workers'), { wrong: 0 })
})

t.test('workers terminated while doorbells ring leave nothing, and the peer is told', { skip }, async t => {
  t.strictSame(await run(t, 'terminate-ringing'), { descriptors: 0, mappings: 0 })
})

t.test('workers terminated while they load and connect do not end the process', { skip }, async t => {
  t.strictSame(await run(t, 'terminate-loading'), { mappings: 0 })
})

t.test('a process that ends while its workers load and connect ends well', { skip }, async t => {
  for (let i = 0; i < EXITS; i++) {
    const child = new Child(t, fixture, ['exit-loading', String(seededRandom(t).seed)], PLAIN)
    t.strictSame(await child.end(), GOOD, child.stderr)
  }
})

t.test('a worker that is terminated takes its own workers’ segments with it', { skip }, async t => {
  t.strictSame(await run(t, 'terminate-nested'), { mapped: 2, mappings: 0 })
})

t.test(
  'a worker whose starter knows nothing of us lets go of its segments when it ends',
  { skip },
  async t => {
    const child = new Child(t, new URL('./orphan-child.js', import.meta.url), [], PLAIN)
    t.strictSame(await child.receive(), { mapped: 2, mappings: 0 })
  },
)
