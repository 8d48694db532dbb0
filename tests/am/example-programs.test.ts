/** Programs that are typical of active messages do between two hosts what they do within one, over each driver. */
import t from 'tap'
import { childOn, keyFileOf, makeTwoHosts, noTwoHosts } from '../support/two-hosts.ts'
import {
  CELLS,
  CLIENTS,
  EACH,
  LINES,
  type Names,
  type Question,
  ROUNDS,
  STEPS,
  spread,
} from './example-programs-child.ts'

const PROGRAMS = new URL('./example-programs-child.js', import.meta.url)
const skip = noTwoHosts()
if (skip) t.comment(`SKIPPED: example programs on two hosts: ${skip}`)

for (const driver of ['ethernet', 'tcp']) {
  t.test(`${driver}: ping-pong, a counter, a word count and a halo exchange`, { skip }, async t => {
    const hosts = makeTwoHosts(t)
    const env = { FASTSOCKETS_KEY_FILE: keyFileOf(t) }
    const [near, far] = [hosts.near, hosts.far].map(host => {
      const child = childOn(t, host, PROGRAMS, [], env)
      return <A>(question: Question): Promise<A> => child.ask<A>(question)
    }) as [<A>(question: Question) => Promise<A>, <A>(question: Question) => Promise<A>]
    const names = await far<Names>({ ask: 'serve', driver })
    const { halo } = await near<Names>({ ask: 'serve', driver })
    t.strictSame(await near({ ask: 'ping-pong', names }), { answered: ROUNDS })
    t.strictSame(await near({ ask: 'counter', names }), { last: CLIENTS * EACH })
    const { words } = await near<{ words: Record<string, number> }>({ ask: 'word-count', names })
    t.match(words, { the: 2 * LINES, fox: LINES, number: LINES })
    const workers = [...halo, ...names.halo]
    const parts = await Promise.all(
      [near, far].map(side => side<{ parts: number[][] }>({ ask: 'halo', workers })),
    )
    t.strictSame(
      parts.flatMap(({ parts }) => parts.flat()),
      rodAfter(STEPS, workers.length * CELLS),
      'as on one host',
    )
    await Promise.all([near({ ask: 'close' }), far({ ask: 'close' })])
  })
}

function rodAfter(steps: number, length: number): number[] {
  let rod = new Float64Array(length + 2)
  rod[1] = 1000
  for (let step = 0; step < steps; step++) {
    rod = new Float64Array(spread(rod))
    rod[0] = rod[1] as number
    rod[length + 1] = rod[length] as number
  }
  return [...rod.subarray(1, length + 1)]
}
