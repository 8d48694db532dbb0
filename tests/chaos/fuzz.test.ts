/** Hostile inputs of every kind (fuzz/kinds): few of them here, a million of each by `npm run fuzz`. */
import t from 'tap'
import { seededRandom } from '../support/random.ts'
import { KINDS } from './fuzz/kinds/index.ts'
import { runKind } from './fuzz/run-kind.ts'

const INPUTS = 20_000
/** Each input of these is a connection, or several. */
const CONNECTING = ['squatters', 'handoff']
const CONNECTING_INPUTS = Number(process.env.FASTSOCKETS_TEST_INPUTS || INPUTS)

for (const kind of KINDS) {
  const inputs = CONNECTING.includes(kind.name) ? CONNECTING_INPUTS : INPUTS
  t.test(`${inputs} of ${kind.name}: ${kind.what}`, { skip: kind.absence?.() ?? false }, async t => {
    const { seed } = seededRandom(t)
    const { counts, complaints, longestMs, growth } = await runKind(kind, seed, inputs)
    t.comment(`${JSON.stringify(counts)}; longest turn ${longestMs.toFixed(1)} ms, ${growth} bytes more`)
    t.strictSame(complaints, [])
    for (const what of kind.reaches) t.ok((counts[what] ?? 0) > 0, `${counts[what]} of "${what}"`)
  })
}

t.test('a victim that throws, leaves something behind, or is not reached is found out', async t => {
  const base = { name: 'x', what: 'nothing', reaches: [] }
  const kept: Buffer[] = []
  for (const [complaint, kind] of [
    [/nothing got to "there"/, { ...base, reaches: ['there'], open: () => ({ attack() {}, honest() {} }) }],
    [
      /Error: thrown/,
      {
        ...base,
        open: () => ({
          attack() {
            throw new Error('thrown')
          },
          honest() {},
        }),
      },
    ],
    [
      /bytes more/,
      {
        ...base,
        open: () => ({ attack: () => void kept.push(Buffer.alloc(2 ** 25)), honest() {} }),
      },
    ],
    [
      /not served/,
      {
        ...base,
        open: () => {
          let isAttacked = false
          return {
            attack() {
              isAttacked = true
            },
            honest() {
              if (isAttacked) throw new Error('not served')
            },
          }
        },
      },
    ],
    [
      /a turn took/,
      {
        ...base,
        open: () => ({
          attack: ({ victim }: { victim(act: () => void): void }) =>
            victim(() => {
              const before = process.cpuUsage()
              for (let spentUs = 0; spentUs < 600_000; ) {
                const { user, system } = process.cpuUsage(before)
                spentUs = user + system
              }
            }),
          honest() {},
        }),
      },
    ],
  ] as const) {
    const { complaints } = await runKind(kind, 1, 1)
    t.match(complaints.join('\n'), complaint)
  }
})
