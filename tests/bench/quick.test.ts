/** `fastsockets bench --quick`: the shape of its report. The figures mean nothing, and none is looked at. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { CONTESTANTS } from '../../bench/contestants.ts'
import { prepareOutputs } from '../../bench/outputs.ts'
import { checkReport } from '../../bench/read-report.ts'
import { FAILED } from '../../bench/result.ts'
import { measureInRounds } from '../../bench/rounds.ts'
import { runSuites } from '../../bench/run-suites.ts'
import { QUICK_SECONDS, type Suite } from '../../bench/suite.ts'
import { apps } from '../../bench/suites/apps.ts'
import { SUITES } from '../../bench/suites.ts'
import { plainEnvironment } from '../support/child.ts'

const CLI = fileURLToPath(new URL('../../fastsockets/cli/main.js', import.meta.url))
const MAIN = fileURLToPath(new URL('../../bench/main.js', import.meta.url))
const TIMEOUT_MS = 300_000
const ONCE = ['--quick', '--rounds', '1']

function bench(...args: string[]) {
  return spawnSync(process.execPath, [CLI, 'bench', ...args], {
    env: plainEnvironment(),
    encoding: 'utf8',
    maxBuffer: 100 * 1024 * 1024,
  })
}

t.test(
  'every contestant of every suite is measured, or left out by name',
  { timeout: TIMEOUT_MS },
  async t => {
    const { status, stdout, stderr } = bench('--quick', '--rounds', '1', '--json', '--seed', '7')
    t.equal(status, 0, stderr)
    const report = checkReport(JSON.parse(stdout), 'standard output')
    t.match(report, {
      command: 'fastsockets bench --quick --rounds 1 --json --seed 7',
      options: { rounds: 1, seed: 7 },
    })
    for (const { suite, contestant, reason } of report.skipped)
      t.comment(`skipped: ${suite}, ${contestant}: ${reason}`)
    for (const suite of SUITES) {
      const names = suite.contestants ?? CONTESTANTS.map(({ name }) => name)
      const known = [...report.results, ...report.skipped].filter(entry => entry.suite === suite.name)
      for (const name of names) {
        t.ok(
          known.some(({ contestant }) => contestant === name),
          `${suite.name}: ${name}`,
        )
      }
      for (const { contestant } of known)
        t.ok(names.includes(contestant), `${suite.name}: ${contestant} is known`)
    }
    const keys = report.results.map(({ suite, contestant, parameters, metric }) =>
      JSON.stringify([suite, contestant, parameters, metric]),
    )
    t.equal(new Set(keys).size, keys.length, 'no measurement is there twice')
  },
)

/** Measures a pause so many times. */
function slowSuite(name: string, quickSeconds: number, trialCount: number, pauseMs: number): Suite {
  const trials = Array.from({ length: trialCount }, (_, i) => ({
    contestant: `${name}-${i}`,
    measure: async () => {
      await delay(pauseMs)
      return [{ parameters: {}, metric: 'time', unit: 'us', better: 'lower' as const, value: 1 }]
    },
  }))
  return {
    name,
    what: 'pauses',
    quickSeconds,
    baseline: 'none',
    run: context => measureInRounds(context, name, trials, 'none'),
  }
}

t.test('all suites together have the minute of a quick run', async t => {
  const seconds = SUITES.reduce((sum, { quickSeconds }) => sum + quickSeconds, 0)
  t.ok(seconds <= QUICK_SECONDS, `${seconds} s`)
})

t.test('a run that may take so long begins nothing later, and names what it has left out', async t => {
  const trialCount = 30
  const suites = ['first', 'second'].map(name => slowSuite(name, 2, trialCount, 200))
  const options = { rounds: 1, isQuick: true, seed: 1, command: 'none' }
  const { report, failures } = await runSuites(suites, { ...options, secondsMax: 4 })
  t.strictSame(failures, [])
  t.ok(report.seconds < 2 * trialCount * 0.2, `${report.seconds} s, of which all would take more`)
  for (const { name } of suites) {
    const done = report.results.filter(({ suite }) => suite === name)
    const left = report.skipped.filter(({ suite }) => suite === name)
    t.ok(done.length > 0 && left.length > 0, `${name}: ${done.length} measured, ${left.length} left out`)
    t.equal(done.length + left.length, trialCount)
    for (const { reason } of left) t.match(reason, /no time left/)
  }
  const { report: whole } = await runSuites([slowSuite('whole', 0, 3, 10)], options)
  t.equal(whole.results.length, 3)
})

t.test('what is left out of a suite is named: sizes, and apps', async t => {
  const { status, stdout, stderr } = bench('pingpong', ...ONCE, '--contestants', 'c-limit', '--json')
  t.equal(status, 0, stderr)
  const limited = checkReport(JSON.parse(stdout), 'standard output')
  const reasons = limited.skipped.map(({ contestant, reason }) => `${contestant}: ${reason}`)
  if (limited.results.some(({ contestant }) => contestant === 'c-limit'))
    t.strictSame(reasons, ['c-limit: it carries messages of up to 64 B only'])
  else t.equal(reasons.length, 1)

  const options = { rounds: 1, isQuick: true, seed: 1, command: 'none', secondsMax: 0 }
  const { report } = await runSuites([apps], options)
  t.strictSame(report.results, [])
  for (const app of ['ftp', 'http', 'grpc', 'matrix'])
    t.ok(
      report.skipped.some(
        ({ contestant, reason }) => contestant === 'net-tcp' && reason.startsWith(`${app}: `),
      ),
      app,
    )
})

t.test('a suite that breaks down costs the report nothing of the others', async t => {
  const broken: Suite = {
    ...slowSuite('broken', 0, 1, 1),
    contestants: ['one', 'other'],
    run: async () => {
      throw new Error('no limits are known')
    },
  }
  const options = { rounds: 1, isQuick: true, seed: 1, command: 'none' }
  const suites = [slowSuite('first', 0, 1, 1), broken, slowSuite('last', 0, 1, 1)]
  const { report, failures } = await runSuites(suites, options)
  t.strictSame(failures, ['broken: no limits are known'])
  t.strictSame(
    report.results.map(({ suite }) => suite),
    ['first', 'last'],
  )
  const reason = `${FAILED}no limits are known`
  t.strictSame(report.skipped, [
    { suite: 'broken', contestant: 'one', reason },
    { suite: 'broken', contestant: 'other', reason },
  ])
})

t.test('the help names each suite, and says what it measures', async t => {
  const { stdout } = bench('--help')
  for (const { name, what } of SUITES) t.ok(stdout.includes(`  ${name} `) && stdout.includes(what), name)
})

t.test('only what was asked for, and the baseline, as a table', async t => {
  const { status, stdout } = bench('connect', ...ONCE, '--contestants', 'net-unix')
  t.equal(status, 0)
  t.match(stdout, /connect: rate.*net-tcp.*net-unix/s)
  t.notMatch(stdout, /pingpong|zeromq-ipc/)
  t.match(stdout, /a quick run: .*its figures mean nothing/)
  t.notMatch(stdout, /targets|holds|MISSED|not measured$/m, 'no verdicts')
})

t.test('a suite that is named twice is measured once, also without a listener for its progress', async t => {
  const args = ['connect', 'connect', '--quick', '--rounds', '1', '--contestants', 'net-tcp', '--json']
  const child = spawn(process.execPath, [MAIN, ...args], { env: plainEnvironment() })
  child.stderr.destroy()
  const [json, [status]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  t.equal(status, 0)
  const { results } = checkReport(JSON.parse(json), 'standard output')
  const keys = results.map(({ parameters, metric }) => JSON.stringify([parameters, metric]))
  t.ok(keys.length > 0)
  t.equal(new Set(keys).size, keys.length)
})

t.test('what cannot be written is complained of before anything is measured', async t => {
  const folder = t.testdir({ file: '', folder: {} })
  for (const [option, name, complaint] of [
    ['--html', 'folder', /EISDIR/],
    ['--html', 'file/page.html', /ENOTDIR|EEXIST/],
    ['--svg', 'file', /EEXIST/],
  ] as const) {
    const ended = bench('connect', '--quick', '--contestants', 'net-tcp', option, join(folder, name))
    t.match(ended, { status: 1, stdout: '', stderr: complaint }, `${option} ${name}`)
  }
  prepareOutputs({ html: join(folder, 'new/page.html'), svg: join(folder, 'new/pictures') })
  t.strictSame(readdirSync(join(folder, 'new')), ['pictures'], 'no page is left of the trial')
})

t.test('errors of usage end with 2, before anything is measured', async t => {
  for (const [args, complaint] of [
    [['nonsense'], /there is no suite nonsense; there are pingpong,/],
    [['--contestants', 'net-tcp,carrier-pigeon'], /There is no carrier-pigeon; there are c-limit,/],
    [['micro', '--contestants', 'raw'], /no suite of these has raw; they have ring-/],
    [['apps', 'micro', '--contestants', 'raw,dispatch,c-limit'], /no suite of these has c-limit;/],
    [['--rounds', '0'], /a whole number from 1 to 1000/],
    [['--seed', 'x'], /a whole number from 0/],
    [['--nonsense'], /unknown option '--nonsense'/],
  ] as const) {
    t.match(bench(...args), { status: 2, stdout: '', stderr: complaint }, args.join(' '))
  }
})
