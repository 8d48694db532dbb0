import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { PLANTS } from './plants.ts'
import { shrink } from './shrink.ts'
import { KINDS, type Kind, simulate } from './simulate.ts'
import { type FaultKind, isMasked, type Outcome } from './world.ts'

const STEPS = 300
/** Where a seed must find what it found before: whatever the estimates of the other presets become. */
const HARDWARE = 'ideal'
/** Seeds within which each planted bug must be found. */
const PLANT_SEEDS = 60
/** Fixed seeds of each kind: more than 200 together. */
const SEEDS: Readonly<Record<Kind, number>> = {
  endpoints: 60,
  sockets: 35,
  raw: 30,
  promotion: 30,
  names: 12,
  bootstrap: 8,
  peers: 11,
  rpc: 17,
  mixed: 6,
}
/** The trace of a seed, on every version of Node; another one if what is on the wire, or when, has changed on purpose. */
const TRACES: Readonly<Record<Kind, readonly [seed: number, trace: number]>> = {
  endpoints: [1, 0xc1eb1bff],
  sockets: [1, 0xe9268aec],
  raw: [1, 0x4e69c0a8],
  promotion: [1, 0x9016e942],
  names: [1, 0x5040d2df],
  bootstrap: [1, 0xd896cc3],
  peers: [1, 0xd1ae94f],
  rpc: [1, 0x976f108a],
  mixed: [1, 0xf522bf40],
}

/** Seeds that have found a fault of the product, and what it was. */
const FOUND: readonly (readonly [
  kind: Kind,
  seed: number,
  steps: number,
  fault: string,
  /** Over the hardware that the seed chooses, without these faults. */
  without?: readonly FaultKind[],
])[] = [
  ['sockets', 7, STEPS, 'a program that stopped reading in the middle of a fetch kept more than its window'],
  [
    'sockets',
    27,
    STEPS,
    'an offer that the peer had half fetched when it closed was made again, out of sequence',
  ],
  [
    'promotion',
    6,
    STEPS,
    'a side that had ended did not say that it had left TCP: its peer could not go back',
  ],
  ['promotion', 32, STEPS, 'a side that had ended could not ask its peer to go back to TCP'],
  ['promotion', 41, STEPS, 'a server whose client closed while it moved was reset'],
  ['raw', 1, STEPS, 'trySend overtook a send whose bytes had found no window'],
  ['raw', 99, STEPS, 'a message that trySend had taken was cut off by close'],
  ['raw', 87, STEPS, 'a send that went into a posted receive, beyond the window, never settled'],
  ['names', 4, STEPS, 'a name that was released while the daemon was away stayed as long as its client'],
  ['names', 36, STEPS, 'so did a name that was released before its registration was answered'],
  ['promotion', 59, 155, 'the count of a server that reached a closed client was answered by a reset'],
  [
    'promotion',
    862510774,
    45,
    'a side that owed a flag sent it in the middle of an offer that its peer had half fetched and closed: the channel broke',
    ['faults', 'partition', 'stall', 'pause', 'end'],
  ],
  [
    'peers',
    2,
    281,
    'a listener of several threads whose slot another one had taken was not published again',
    [],
  ],
  ['promotion', 862510764, 241, 'a request to go back, after the peer had closed, had no answer', ['stall']],
  [
    'mixed',
    796455522,
    293,
    "a name that its client's late requests removed and brought back stayed lost",
    [],
  ],
  [
    'bootstrap',
    1752668694,
    299,
    'a greeting that TCP cut after 14 bytes looked like that of a server in its first phase',
    ['faults', 'stall'],
  ],
]

// Under load; in quiet a minute or two.
t.setTimeout(600_000)

const kinds = Object.keys(KINDS) as Kind[]

for (const kind of kinds) {
  await t.test(`${kind}: ${SEEDS[kind]} seeds break no rule, and repeat exactly`, async t => {
    const failures: string[] = []
    const sum: Record<string, number> = {}
    for (let seed = 1; seed <= SEEDS[kind]; seed++) {
      const one = await simulate(kind, { seed, steps: STEPS })
      const other = await simulate(kind, { seed, steps: STEPS })
      if (one.failure !== undefined) failures.push(`seed ${seed}: ${one.failure}`)
      else if (JSON.stringify(one) !== JSON.stringify(other)) failures.push(`seed ${seed} does not repeat`)
      const { messages, returned, faults } = one
      for (const [name, count] of Object.entries({ messages, returned, ...faults }))
        sum[name] = (sum[name] ?? 0) + count
    }
    t.strictSame(failures, [])
    const { overruns, ...counts } = sum
    const fired = Object.entries(counts).filter(([name]) => !isMasked(kind, name))
    // Of sockets, whose frames are many: what is sent again to a paused host.
    if (kind === 'endpoints') t.equal(overruns, 0, 'no sender exceeds the receive descriptors')
    for (const [name, count] of fired) t.ok(count > 0, `${name}: ${count} times`)
  })

  await t.test(`${kind}: seeds differ, and one of them has its trace on every Node`, async t => {
    const traces = new Set<number>()
    for (let seed = 1; seed <= 5; seed++) traces.add((await simulate(kind, { seed, steps: 50 })).trace)
    t.equal(traces.size, 5)
    const [seed, trace] = TRACES[kind]
    t.equal((await simulate(kind, { seed, steps: STEPS, hardware: HARDWARE })).trace, trace)
  })

  for (const [name, plant] of Object.entries(PLANTS[kind])) {
    await t.test(`${kind}: the planted bug ${name} is found within ${PLANT_SEEDS} seeds`, async t => {
      const remove = plant()
      let outcome: Outcome | undefined
      try {
        for (let seed = 1; seed <= PLANT_SEEDS && outcome?.failure === undefined; seed++)
          outcome = await simulate(kind, { seed, steps: STEPS, hardware: HARDWARE })
      } finally {
        remove()
      }
      t.comment(`seed ${outcome?.seed}: ${outcome?.failure}`)
      t.not(outcome?.failure, undefined)
    })
  }
}

await t.test('a failure is made shorter, and fails still', async t => {
  const remove = PLANTS.endpoints['region-off-by-one']?.()
  try {
    const options = { seed: 1, steps: STEPS }
    const outcome = await simulate('endpoints', options)
    const shrunk = await shrink('endpoints', options, outcome)
    t.ok(shrunk.options.steps <= outcome.steps, `${shrunk.options.steps} steps`)
    t.ok((shrunk.options.without?.length ?? 0) > 0, `without ${shrunk.options.without}`)
    t.equal((await simulate('endpoints', shrunk.options)).failure, shrunk.outcome.failure)
  } finally {
    remove?.()
  }
})

await t.test('what is thrown in the next tick of a seed fails it', async t => {
  // In a process of its own: tap fails a test for each uncaught exception.
  const program = `
    import { simulate } from '${new URL('simulate.js', import.meta.url)}'
    const outcome = simulate('endpoints', { seed: 1, steps: 10 })
    setImmediate(() => process.nextTick(() => { throw new Error('a late one') }))
    console.log((await outcome).failure)`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program])
  t.equal(stdout, 'a late one\n')
})

for (const [kind, seed, steps, fault, without] of FOUND) {
  await t.test(`${kind}, seed ${seed}: ${fault}`, async t => {
    const chosen = without === undefined ? { hardware: HARDWARE } : { without }
    t.equal((await simulate(kind, { seed, steps, ...chosen })).failure, undefined)
  })
}
