/** What is made of a report: pictures, a page, docs/performance.md. The report is made up. */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { choosePictures } from '../../bench/pictures/choose-pictures.ts'
import { colourOf } from '../../bench/pictures/colours.ts'
import { writeHtml, writeSvg } from '../../bench/pictures/index.ts'
import { CURVES_MAX } from '../../bench/pictures/picture.ts'
import { checkReport, readReport } from '../../bench/read-report.ts'
import { plainEnvironment } from '../support/child.ts'
import { HOSTILE, madeUpReport } from './made-up-report.ts'

const DOCUMENT = fileURLToPath(new URL('../../bench/document/main.js', import.meta.url))
const NAMES = [
  'ablation-spin.svg',
  'ablation-switches.svg',
  'ablation-zcopy.svg',
  'apps-speedup.svg',
  'connect-roundTrip-percentiles.svg',
  'connect-roundTrip.svg',
  'pingpong-roundTrip-percentiles.svg',
  'pingpong-roundTrip.svg',
  'stream-rate-1.svg',
  'stream-rate-2.svg',
]
const report = checkReport(madeUpReport(), 'the made-up report')

t.test('each suite has its pictures, with axes, units and a legend', async t => {
  const directory = join(t.testdir({}), 'new')
  await writeSvg(report, directory)
  t.strictSame(readdirSync(directory).sort(), NAMES)
  const svg = readFileSync(join(directory, 'pingpong-roundTrip.svg'), 'utf8')
  t.match(svg, /^<svg [^>]*xmlns="http:\/\/www\.w3\.org\/2000\/svg"/)
  for (const word of [
    '4 B',
    '64 KiB',
    '10 us',
    '100 us',
    'plain TCP',
    'relinked',
    'Time for a round trip, by message size (lower is better)',
    'message size (logarithmic axis)',
    'round trip (logarithmic axis)',
    'shaded: least and greatest of the rounds',
  ]) {
    t.ok(svg.includes(`>${word}<`), word)
  }
  const hostile = readFileSync(join(directory, 'connect-roundTrip.svg'), 'utf8')
  t.notMatch(hostile, /<script/)
  t.match(hostile, /&lt;script/)
})

t.test(
  'the real report: few curves, one colour a contestant everywhere, what is better, and the spread',
  async t => {
    const real = readReport(fileURLToPath(new URL('../../../bench/baseline.json', import.meta.url)))
    const pictures = choosePictures(real)
    t.ok(pictures.length > 20, `${pictures.length} pictures`)
    const files = pictures.map(({ name }) => name)
    t.equal(new Set(files).size, files.length, 'each has a name of its own')
    const directory = t.testdir({})
    await writeSvg(real, directory)
    for (const { name, title, kind, series } of pictures) {
      t.match(title, /\((lower|higher) is better\)$/, name)
      if (kind === 'curves') t.ok(series.length <= CURVES_MAX, `${name}: ${series.length} curves`)
      const svg = readFileSync(join(directory, `${name}.svg`), 'utf8').toLowerCase()
      const contestants = new Set(series.flatMap(one => one.points.map(({ of = one.name }) => of)))
      for (const contestant of ['net-tcp', 'net-relinked', 'net-unix'].filter(known =>
        contestants.has(known),
      )) {
        t.ok(svg.includes(`"${colourOf(contestant)}"`), `${name}: ${contestant}`)
      }
      if (!name.endsWith('-percentiles') && !name.includes('-percentiles-')) {
        t.ok(
          series.some(({ points }) =>
            points.some(({ low, high }) => low !== undefined && high !== undefined),
          ),
          name,
        )
      }
    }
  },
)

t.test('the page is one file without scripts and without anything from elsewhere', async t => {
  const file = join(t.testdir({}), 'report.html')
  await writeHtml(report, file)
  const page = readFileSync(file, 'utf8')
  t.equal(page.split('<svg ').length - 1, NAMES.length)
  t.match(page, /&lt;script&gt;alert\(&quot;1&quot;\)/)
  t.notMatch(page, /<script|<link|<img|\s(src|href|on\w+)=/i)
  t.notMatch(page.replaceAll('http://www.w3.org/', ''), /https?:/)
  t.match(page, /The machine was not quiet/)
  t.match(page, /<td>ZCopy<\/td><td>off<\/td><td class="number">0\.500<\/td>/, 'the table of techniques')
})

t.test('docs/performance.md says how, how fast, and where it does not help', async t => {
  const docs = t.testdir({ performance: { 'of-an-earlier-run.svg': '', 'kept.txt': '' } })
  const file = join(docs, 'report.json')
  writeFileSync(file, JSON.stringify(report))
  const run = (...paths: string[]) =>
    spawnSync(process.execPath, [DOCUMENT, ...paths, '--docs', docs], {
      env: plainEnvironment(),
      encoding: 'utf8',
    })
  const { status, stderr } = run(file)
  t.equal(status, 0, stderr)
  t.strictSame(readdirSync(join(docs, 'performance')).sort(), [...NAMES, 'kept.txt'].sort())
  const page = readFileSync(join(docs, 'performance.md'), 'utf8')
  for (const [, name = ''] of page.matchAll(/\]\(performance\/(.*?)\)/g)) t.ok(NAMES.includes(name), name)
  t.match(
    page,
    /^# Performance\n\nBetween two warm relinked programs of one host, a 64-byte round trip is 20 times as fast/,
  )
  t.match(page, /not quiet/)
  t.match(page, /\| pingpong, round trip, 64 B \| 60.0 us \| 3.00 us \| 20 \|/)
  t.match(page, /Where it does not help[\s\S]*\| connect, round trip \| net-half-relinked \| 0.50 \|/)
  t.match(page, /Why:\n\n- `net-half-relinked`: Only one side is relinked/)
  t.match(page, /\| 64 B echo \| at most 1\/8 \| 0\.0500 \| 0\.0450 to 0\.0550 \| holds \|/)
  t.match(page, /\| 64 KiB writes \| at least 3 \| 1\.50 \| 1\.35 to 1\.65 \| \*\*missed\*\* \|/)
  t.match(page, /\| new connections a second \| at least 5 \| {2}\| {2}\| not measured \|/)
  t.match(page, /\| technique \| setting \| stream 64 KiB \|/)
  t.match(page, /\| as-shipped \| sockets \| 2\.00 GB\/s \|\n\| receive posting \| off \| 0\.500 \|/)
  t.match(page, /\| Sockets over EMP 2002 \| ftp.*\| 1.5, app ftp, part download \|/)
  t.match(page, /\| WSDLite 2000 \| round trip, mean.*\| 20, geometric mean of 3 sizes \|/)
  t.match(page, /\| WSDLite 2000 \| peak bandwidth.*\| 2.0, peak to peak of 2 sizes \|/)
  t.notMatch(page, HOSTILE)
  t.notMatch(page.replace(/`.*?`/g, ''), /[^\\]<script/)

  t.notMatch(page, /On other Nodes/)
  const other = join(docs, 'other.json')
  const partial = report.results.filter(({ suite }) => suite === 'pingpong')
  const machine = { ...report.machine, node: HOSTILE }
  writeFileSync(other, JSON.stringify({ ...report, results: partial, machine }))
  t.equal(run(file, other).status, 0)
  const beside = readFileSync(join(docs, 'performance.md'), 'utf8')
  t.match(beside, /## On other Nodes/)
  t.match(beside, /\n\| 64 B echo \| at most 1\/8 \| 0\.0500 \| 0\.0500 \|\n/)
  t.match(beside, /\n\| 64 KiB writes \| at least 3 \| \*\*1\.50\*\* \| {2}\|\n/)
  t.notMatch(beside.replace(/`.*?`/g, ''), /[^\\]<script/)

  writeFileSync(file, '{"version":1}')
  t.match(run(file), { status: 1, stderr: /is no report/ })
  const elsewhere = report.results.map(result => ({ ...result, suite: '../../elsewhere' }))
  writeFileSync(file, JSON.stringify({ ...report, results: elsewhere }))
  t.match(run(file), { status: 1, stderr: /is no report.*suite must match pattern/ })
  t.strictSame(
    readdirSync(join(docs, 'performance')).sort(),
    [...NAMES, 'kept.txt'].sort(),
    'all are there still',
  )
})
