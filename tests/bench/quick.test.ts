/** `fastsockets bench --quick`: the shape of its report. The figures mean nothing, and none is looked at. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { CONTESTANTS } from '../../bench/contestants.ts'
import { checkReport } from '../../bench/read-report.ts'
import { SUITES } from '../../bench/suites.ts'
import { plainEnvironment } from '../support/child.ts'

const CLI = fileURLToPath(new URL('../../fastsockets/cli/main.js', import.meta.url))
const TIMEOUT_MS = 300_000

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
    const { status, stdout, stderr } = bench('--quick', '--json', '--seed', '7')
    t.equal(status, 0, stderr)
    const report = checkReport(JSON.parse(stdout), 'standard output')
    t.match(report, { command: 'fastsockets bench --quick --json --seed 7', options: { rounds: 1, seed: 7 } })
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

t.test('only what was asked for, and the baseline, as a table', async t => {
  const { status, stdout } = bench('connect', '--quick', '--contestants', 'net-unix')
  t.equal(status, 0)
  t.match(stdout, /connect: rate.*net-tcp.*net-unix/s)
  t.notMatch(stdout, /pingpong|zeromq-ipc/)
  t.match(stdout, /new connections a second.*not measured/)
})

t.test('errors of usage end with 2, before anything is measured', async t => {
  for (const [args, complaint] of [
    [['nonsense'], /there is no suite nonsense; there are pingpong,/],
    [['--contestants', 'net-tcp,carrier-pigeon'], /There is no carrier-pigeon; there are c-limit,/],
    [['--rounds', '0'], /a whole number from 1 to 1000/],
    [['--seed', 'x'], /a whole number from 0/],
    [['--nonsense'], /unknown option '--nonsense'/],
  ] as const) {
    t.match(bench(...args), { status: 2, stdout: '', stderr: complaint }, args.join(' '))
  }
})
