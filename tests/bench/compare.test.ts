/** `npm run bench:compare`, with reports that are made up: what is noise, what is a loss, and what is no report. */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { FAILED, REPORT_VERSION, type Report, type Result } from '../../bench/result.ts'
import { plainEnvironment } from '../support/child.ts'

const COMPARE = fileURLToPath(new URL('../../bench/compare.js', import.meta.url))

/** A round differs from the next by up to 8 % here, as on a machine that is not all ours. */
const NOISE = [1.03, 0.96, 1.08, 0.99, 0.94]
const OTHER_NOISE = [0.95, 1.07, 1.0, 0.93, 1.04]
const RATIO = 0.2
const TCP_US = 60

function result(contestant: string, suite: string, better: 'lower' | 'higher', rounds: number[]): Result {
  const isBase = contestant === 'net-tcp'
  return {
    suite,
    contestant,
    parameters: { size: 64 },
    metric: better === 'lower' ? 'roundTrip' : 'rate',
    unit: better === 'lower' ? 'us' : 'B/s',
    better,
    rounds,
    median: rounds[2] as number,
    ...(isBase ? {} : { ratio: { to: 'net-tcp', median: RATIO, low: RATIO, high: RATIO } }),
  }
}

/** A contestant with one latency and one rate: `worse` times worse than in a report with `worse` 1. */
function report(noise: readonly number[], { worse = 1, machine = 1 } = {}): Report {
  const tcp = noise.map((_, i) => TCP_US * machine * (OTHER_NOISE[i % OTHER_NOISE.length] as number))
  const results = [
    result('net-tcp', 'pingpong', 'lower', tcp),
    result('net-tcp', 'stream', 'higher', tcp),
    result(
      'net-relinked',
      'pingpong',
      'lower',
      noise.map((x, i) => (tcp[i] as number) * RATIO * x * worse),
    ),
    result(
      'net-relinked',
      'stream',
      'higher',
      noise.map((x, i) => (((tcp[i] as number) / RATIO) * x) / worse),
    ),
  ]
  return {
    version: REPORT_VERSION,
    command: 'fastsockets bench',
    startedAt: '2026-11-22T00:00:00.000Z',
    seconds: 1,
    machine: {
      cores: 2,
      model: 'none',
      memoryBytes: 1,
      node: 'v20.0.0',
      kernel: 'Linux 6',
      loadBefore: 0,
      loadAfter: 1,
      isQuiet: true,
    },
    options: { rounds: noise.length, isQuick: false, seed: 1 },
    results,
    skipped: [],
  }
}

t.test('comparing reports', async t => {
  const folder = t.testdir()
  const write = (name: string, value: unknown): string => {
    const file = join(folder, name)
    writeFileSync(file, typeof value === 'string' ? value : JSON.stringify(value))
    return file
  }
  const compare = (...files: string[]) =>
    spawnSync(process.execPath, [COMPARE, ...files], { env: plainEnvironment(), encoding: 'utf8' })
  const base = write('base.json', report(NOISE))

  t.test('noise is not a change, on a machine half as fast either', async t => {
    const { status, stdout } = compare(base, write('noise.json', report(OTHER_NOISE, { machine: 2 })))
    t.equal(status, 0)
    t.match(stdout, '2 ratios to TCP compared, 0 changed')
  })

  t.test('a drift of 8 % is within the tolerance', async t => {
    t.equal(compare(base, write('drift.json', report(OTHER_NOISE, { worse: 1.08 }))).status, 0)
  })

  t.test('a loss of 40 % is one, of latency and of rate', async t => {
    const { status, stdout } = compare(base, write('loss.json', report(OTHER_NOISE, { worse: 1.4 })))
    t.equal(status, 1)
    t.match(stdout, /pingpong.*net-relinked.*roundTrip.*WORSE/)
    t.match(stdout, /stream.*net-relinked.*rate.*WORSE/)
  })

  t.test('a gain is said, and is no failure', async t => {
    const { status, stdout } = compare(base, write('gain.json', report(OTHER_NOISE, { worse: 0.6 })))
    t.equal(status, 0)
    t.match(stdout, /net-relinked.*better/)
  })

  t.test('one wild round is no loss', async t => {
    const wild = [0.95, 1.07, 9, 0.93, 1.04]
    const { status, stdout } = compare(base, write('wild.json', report(wild)))
    t.equal(status, 0)
    t.match(stdout, '0 changed by more than 10 %, 1 cannot be told')
  })

  t.test('a wild round of the base hides no loss in silence', async t => {
    const wild = (value: number) => write(`wild-base-${value}.json`, report([1.03, 0.96, value, 0.99, 0.94]))
    const worse = write('half.json', report(OTHER_NOISE, { worse: 2 }))
    for (const value of [0.05, 20]) {
      const { stdout } = compare(wild(value), worse)
      // For a time it is wild to the one side, for a rate to the other: there the loss is found.
      t.match(stdout, '1 changed by more than 10 %, 1 cannot be told')
      t.match(stdout, value > 1 ? /pingpong.*cannot be told/ : /stream.*cannot be told/)
    }
    const many = (worse: number) => report([...NOISE, ...OTHER_NOISE, 20, 0.05], { worse })
    t.match(compare(write('many.json', many(1)), write('many-worse.json', many(2))), {
      status: 1,
      stdout: /pingpong.*50 % WORSE|stream.*50 % WORSE/,
    })
  })

  t.test('ten percent of a rate are ten percent of the rate', async t => {
    const even = [1, 1, 1, 1, 1]
    const even1 = write('even.json', report(even))
    const { stdout: little } = compare(even1, write('little.json', report(even, { worse: 1 / 0.905 })))
    t.notMatch(little, /stream.*WORSE/)
    t.match(little, /pingpong.*10 % WORSE/, 'a time is more than 10 % longer then')
    t.match(
      compare(even1, write('lower.json', report(even, { worse: 1 / 0.895 }))).stdout,
      /stream.*10 % WORSE|stream.*11 % WORSE/,
    )
  })

  t.test('what a new report lacks is said', async t => {
    const { results, ...rest } = report(OTHER_NOISE)
    const { status, stdout } = compare(base, write('less.json', { ...rest, results: results.slice(0, 3) }))
    t.equal(status, 0)
    t.match(stdout, 'the new report lacks 1: stream of net-relinked')
  })

  t.test('what a technique is worth beside all of them is no matter of TCP', async t => {
    const withAblation = (shipped: number): Report => {
      const whole = report(NOISE)
      const both = [NOISE.map(x => x * shipped), NOISE].map((rounds, i) => ({
        ...result(['as-shipped', 'no-posting'][i] as string, 'ablation', 'higher', rounds),
        ratio: { to: 'as-shipped', median: 1, low: 1, high: 1 },
      }))
      return { ...whole, results: [...whole.results, ...both] }
    }
    const { status, stdout } = compare(
      write('slow.json', withAblation(1)),
      write('fast.json', withAblation(1.5)),
    )
    t.equal(status, 0)
    t.match(stdout, '2 ratios to TCP compared, 0 changed')
  })

  t.test('where plain TCP itself broke down, nothing says that all is well', async t => {
    const { results, ...rest } = report(OTHER_NOISE)
    const alone = results
      .filter(one => one.suite === 'pingpong' || one.contestant !== 'net-tcp')
      .map(one => (one.suite === 'pingpong' ? one : { ...one, ratio: undefined }))
    const skipped = [{ suite: 'stream', contestant: 'net-tcp', reason: `${FAILED}no memory` }]
    const { status, stdout } = compare(base, write('without.json', { ...rest, results: alone, skipped }))
    t.equal(status, 1)
    t.match(stdout, 'the new report lacks 1: stream of net-relinked')
  })

  t.test('whatever is no report that can be compared ends with 2, and says why', async t => {
    const good = report(NOISE)
    const bad: Record<string, [unknown, RegExp]> = {
      'broken.json': ['{', /cannot be read as JSON/],
      'other.json': [{ name: 'x' }, /no report of fastsockets bench: .*must have required property/],
      'newer.json': [{ ...good, version: 2 }, /version 2; this program reads version 1/],
      'few.json': [report(NOISE.slice(0, 3)), /3 rounds.*5 or more/],
      'quick.json': [{ ...good, options: { ...good.options, isQuick: true } }, /--quick/],
      'missing-round.json': [
        { ...good, options: { ...good.options, rounds: 6 } },
        /it has 6 rounds, but pingpong, net-tcp, roundTrip has 5/,
      ],
      'empty.json': [{ ...good, results: [] }, /no result in common/],
      'negative.json': [
        { ...good, results: [{ ...good.results[0], rounds: [-1] }] },
        /results\/0\/rounds\/0 must be > 0/,
      ],
    }
    for (const [name, [value, complaint]] of Object.entries(bad)) {
      const { status, stderr } = compare(base, write(name, value))
      t.equal(status, 2, name)
      t.match(stderr, complaint, name)
    }
    t.match(compare(base), { status: 2, stderr: /usage/ })
    t.match(compare(base, join(folder, 'absent.json')), { status: 2, stderr: /absent\.json/ })
  })
})

t.test('the committed baseline can be compared with, and was made on a quiet machine', async t => {
  const baseline = fileURLToPath(new URL('../../../bench/baseline.json', import.meta.url))
  const { machine, results } = JSON.parse(readFileSync(baseline, 'utf8')) as Report
  t.ok(machine.isQuiet)
  for (const suite of ['pingpong', 'stream', 'connect', 'cpu', 'oversubscribed', 'apps']) {
    t.ok(
      results.some(one => one.suite === suite && one.contestant === 'net-relinked'),
      suite,
    )
  }
  const { status, stdout } = spawnSync(process.execPath, [COMPARE, baseline, baseline], {
    encoding: 'utf8',
    env: plainEnvironment(),
  })
  t.equal(status, 0)
  t.match(stdout, /, 0 changed/)
})
