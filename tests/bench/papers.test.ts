/** `npm run bench:papers`: what it prints adds up, keeps its promises, and is what docs/papers.md has. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { withTables } from '../../bench/papers/document.ts'
import type { PapersReport } from '../../bench/papers/report.ts'
import { plainEnvironment } from '../support/child.ts'

const SCRIPT = fileURLToPath(new URL('../../bench/papers/main.js', import.meta.url))
const PAGE = new URL('../../../docs/papers.md', import.meta.url)
const PAPERS = 5
/** A fit that misses its own row is none. */
const FIT_MAX = 0.035
const COUNTED_MIN = 15

interface Printed extends PapersReport {
  readonly fits: readonly { readonly parameter: string; readonly row: string }[]
}

async function run(...options: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [SCRIPT, ...options], {
    env: plainEnvironment(),
  })
  return stdout
}

const [once, again, shown] = await Promise.all([run('--json'), run('--json'), run()])
const report = JSON.parse(once) as Printed
const { lines, fits, counted, reproduced, ratios } = report

t.test('every row has its numbers, and two runs are the same', async t => {
  t.equal(once, again)
  t.equal(new Set(lines.map(({ paper }) => paper)).size, PAPERS)
  t.equal(new Set(lines.map(({ id }) => id)).size, lines.length)
  for (const { id, theirs, ours, difference, kind, source, by, verdict } of lines) {
    t.ok(ours > 0, `${id}: ${ours}`)
    t.ok(source.length > 0 && by.length > 0, id)
    t.equal(theirs === undefined, kind === 'figure', id)
    if (theirs === undefined) t.equal(verdict, 'none', id)
    else t.ok(Math.abs((difference as number) - (ours / theirs - 1)) < 1e-9, id)
  }
  t.ok(ratios.length > 0 && ratios.every(({ here }) => /^\d/.test(here)))
  t.ok(lines.every(({ paper, what }) => shown.includes(paper) && shown.includes(what)))
})

t.test('a parameter is fitted to one row, which it meets, and which is not counted', async t => {
  for (const { parameter, row } of fits) {
    const line = lines.find(({ id }) => id === row)
    t.equal(line?.fitted, parameter)
    t.equal(line?.verdict, 'fitted')
    t.ok(Math.abs(line?.difference ?? 1) <= FIT_MAX, `${row}: ${line?.difference}`)
  }
  t.equal(lines.filter(({ verdict }) => verdict === 'fitted').length, fits.length)
})

t.test('three quarters of the others are within 15 %, none beyond 40 %, and limits are kept', async t => {
  const others = lines.filter(({ kind, fitted }) => kind === 'number' && fitted === undefined)
  const within = (most: number): number =>
    others.filter(({ difference }) => Math.abs(difference as number) <= most).length
  t.equal(others.length, counted)
  t.equal(within(0.15), reproduced)
  t.ok(counted >= COUNTED_MIN, `${counted} numbers`)
  t.ok(reproduced >= 0.75 * counted, `${reproduced} of ${counted}`)
  t.equal(within(0.4), counted)
  t.strictSame(
    lines.filter(({ kind, verdict }) => kind === 'bound' && verdict !== 'kept'),
    [],
  )
})

t.test(
  'mechanisms show: receive posting, the registration cache, the unexpected queue, delayed acknowledgements',
  async t => {
    const ours = (id: string): number => lines.find(line => line.id === id)?.ours as number
    t.ok(ours('fast-posting') < ours('fast-no-posting'))
    t.ok(ours('wsdlite-cached') < ours('wsdlite-not-cached'))
    t.ok(ours('emp-expected') < ours('emp-compared'))
    t.ok(ours('emp-acks-32') < ours('emp-acks-1'))
    t.ok(ours('emp-credits-32') < ours('emp-credits-4') && ours('emp-credits-4') < ours('emp-credits-1'))
    t.ok(ours('emp-matrix') > 1)
    t.ok(ours('sdp-zcopy-cycles') < ours('sdp-cycles'))
  },
)

t.test('docs/papers.md has these tables: npm run bench:papers -- --write', async t => {
  const page = readFileSync(PAGE, 'utf8')
  t.equal(page, withTables(page, report))
})
