/**
 * The documentation is true: links lead somewhere, in the checkout and in the package; every block of README.md and the guide
 * compiles or runs; the tables of the reference say what the sources say; and no page is longer than its readers bear.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import t from 'tap'
import { README_PICTURE, readmePicture, withFigures } from '../bench/document/readme-picture.ts'
import { readReport } from '../bench/read-report.ts'
import { unknownVariables } from '../fastsockets/host/environment.ts'
import { POLICY_SCHEMA } from '../fastsockets/policy/policy-schema.ts'
import { FALLBACK_REASONS } from '../fastsockets/reasons.ts'
import { flagOf, LEAVES } from '../nameservice/daemon/settings-schema.ts'
import { CHECKOUT, installApplication } from './docs/application.ts'
import { faultOfCommand, optionsOf, readHelps } from './docs/help.ts'
import { tryPackage, writeTypedPrograms } from './docs/installed-package.ts'
import {
  anchorsOf,
  blocksOf,
  codeRows,
  linksOf,
  type Page,
  readPages,
  sentencesOf,
  withoutBlocks,
  wordCount,
} from './docs/markdown.ts'
import { runPage, writeTypeScript } from './docs/run-page.ts'
import { exportsOf, faultsOf, typesOf } from './docs/types.ts'

const WORDS_MAX = 40_000
const README_LINES_MAX = 150
const GUIDE_LINES_MAX = 200
const SENTENCE_WORDS_MAX = 40
const NOT_RUN_MAX = 3
const DECISION_LINES_MIN = 15
const DECISION_LINES_MAX = 40
const PAGES_AT_ONCE = 5
const RUN_MS_MAX = 900_000
/** Made from a report, and as long as that; and so are parts of other pages. */
const GENERATED = 'docs/performance.md'
const GENERATED_PARTS = /<!-- made by npm run [\s\S]*?<!-- end -->/g
/** Codes of process warnings, which are no variables. */
const WARNINGS = new Set([
  'FASTSOCKETS_NOT_STARTED',
  'FASTSOCKETS_TWO_VERSIONS',
  'FASTSOCKETS_UNKNOWN_VARIABLE',
])
/** Where variables and codes may come from. */
const SOURCES = ['fastsockets', 'am', 'nic', 'nameservice', 'bench', 'deploy', '.ci', 'tests']

const pages = readPages(CHECKOUT)
const guide = pages.filter(({ path }) => path === 'README.md' || path.startsWith('docs/guide/'))
const pageOf = (path: string): Page => {
  const found = pages.find(page => page.path === path)
  if (found === undefined) throw new Error(`there is no ${path}`)
  return found
}
const reference = (name: string): string => pageOf(`docs/reference/${name}.md`).text

t.setTimeout(RUN_MS_MAX)

const [application, helps] = await Promise.all([installApplication(t), readHelps()])
/** The declarations of the package's entry points, by the heading that api.md gives them. */
const doors = new Map(
  [
    'fastsockets/index',
    'fastsockets/raw/index',
    'am/index',
    'am/rpc/index',
    'am/rpc/connect/index',
    'nic/index',
    'nameservice/index',
    'fastsockets/metrics',
  ].map(door => [door, join(application.folder, 'node_modules/fastsockets/dist', `${door}.d.ts`)]),
)
const types = typesOf([
  ...doors.values(),
  ...writeTypedPrograms(application),
  ...guide.flatMap(page => writeTypeScript(application, page)),
])

t.test('every relative link of the checkout leads to a file, and to a heading of it', async t => {
  t.ok(guide.length >= 10, `README.md and ${guide.length - 1} pages of the guide`)
  for (const page of pages)
    t.strictSame(
      brokenLinks(page, path => existsSync(join(CHECKOUT, path))),
      [],
      page.path,
    )
})

t.test('pages have at most the length that they are given', async t => {
  const words = pages
    .filter(({ path }) => path !== GENERATED)
    .reduce((sum, { text }) => sum + wordCount(text.replace(GENERATED_PARTS, '')), 0)
  t.ok(words <= WORDS_MAX, `${words} words in all, ${WORDS_MAX} at most`)
  for (const { path, text } of guide) {
    const lines = text.trimEnd().split('\n').length
    const max = path === 'README.md' ? README_LINES_MAX : GUIDE_LINES_MAX
    t.ok(lines <= max, `${path}: ${lines} lines, ${max} at most`)
  }
})

t.test(`sentences of README.md and the guide have at most ${SENTENCE_WORDS_MAX} words`, async t => {
  for (const { path, text } of guide) {
    const long = sentencesOf(text).filter(sentence => wordCount(sentence) > SENTENCE_WORDS_MAX)
    t.strictSame(long, [], path)
  }
})

t.test('decisions have one form and one length, and the index has each of them', async t => {
  const index = pageOf('docs/decisions/README.md').text
  const decisions = pages.filter(({ path }) => /^docs\/decisions\/\d{4}-/.test(path))
  t.ok(decisions.length > 0)
  for (const { path, text } of decisions) {
    const headings = [...text.matchAll(/^#+ .*$/gm)].map(([heading]) =>
      heading.replace(/^# \d{4}: .+/, '# title'),
    )
    t.strictSame(headings, ['# title', '## Context', '## Decision', '## Consequence'], path)
    const lines = text.trimEnd().split('\n').length
    t.ok(lines >= DECISION_LINES_MIN && lines <= DECISION_LINES_MAX, `${path}: ${lines} lines`)
    t.ok(index.includes(`(${path.slice('docs/decisions/'.length)})`), `${path} is in the index`)
  }
})

t.test('blocks are fenced and name their language; few cannot be run here, each with its reason', async t => {
  const notRun: string[] = []
  for (const { path, text } of guide) {
    t.notMatch(withoutBlocks(text), /^\n {4}\S/m, `${path}: an indented block`)
    for (const { language, line, notRun: reason } of blocksOf(text)) {
      t.not(language, '', `${path}:${line}`)
      if (reason !== undefined) notRun.push(`${path}:${line}: ${reason}`)
    }
  }
  t.ok(notRun.length <= NOT_RUN_MAX, `${notRun.length} blocks are not run:\n${notRun.join('\n')}`)
})

t.test('what pages say between backticks exists: commands, options, scripts, variables', async t => {
  const { scripts } = JSON.parse(readFileSync(join(CHECKOUT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  const variables = variablesOfSources()
  for (const { path, text } of pages) {
    for (const [, script = ''] of text.matchAll(/npm run ([\w:]+)/g))
      t.ok(scripts[script], `${path}: npm run ${script}`)
    for (const [variable] of text.matchAll(/(?<!ERR_)\bFASTSOCKETS_[A-Z][A-Z0-9_]*[A-Z0-9]\b/g))
      t.ok(variables.has(variable) || !isOurs(variable), `${path}: ${variable}`)
  }
  for (const { path, text } of guide) {
    const code = [...text.matchAll(/`([^`\n]+)`/g)].map(([, span = '']) => span)
    const blocks = blocksOf(text).filter(({ language }) => language === 'sh')
    for (const line of [...code, ...blocks.flatMap(block => block.text.split('\n'))]) {
      const fault = faultOfCommand(helps, line)
      if (fault !== undefined) t.fail(`${path}: ${fault} in ${line}`)
    }
  }
})

t.test('docs/reference/reason-codes.md has every fallback reason, and no other', async t => {
  t.strictSame(codeRows(reference('reason-codes')).sort(), Object.keys(FALLBACK_REASONS).sort())
  const known = new Set(Object.keys(FALLBACK_REASONS))
  const named = codeRows(pageOf('README.md').text).filter(code => /^[A-Z]+(_[A-Z]+)*$/.test(code))
  t.ok(named.length >= 5, 'README.md has five of them')
  for (const code of named) t.ok(known.has(code), `README.md: ${code}`)
})

t.test('docs/guide/rdma.md has every code of the RDMA driver', async t => {
  const sources = filesBelow(['nic']).map(file => readFileSync(file, 'utf8'))
  const codes = new Set(sources.flatMap(source => source.match(/(?<=')VERBS_[A-Z_]+(?=')/g) ?? []))
  const explained = new Set(pageOf('docs/guide/rdma.md').text.match(/(?<=`)VERBS_[A-Z_]+(?=`)/g))
  t.strictSame([...explained].sort(), [...codes].sort())
})

t.test('docs/reference/environment.md has every variable of the sources, and no other', async t => {
  t.strictSame(codeRows(reference('environment')).filter(isOurs).sort(), [...variablesOfSources()].sort())
  const set = Object.fromEntries([...variablesOfSources()].map(name => [name, '1']))
  t.strictSame(unknownVariables(set), [], 'a relinked program knows each')
})

t.test('docs/reference/policy-keys.md has every key of the schema, and no other', async t => {
  const page = reference('policy-keys')
  const { rules, ...rest } = POLICY_SCHEMA.properties
  t.strictSame(codeRows(page, '## The file').sort(), [...Object.keys(rest), 'rules'].sort())
  t.strictSame(codeRows(page, '## A rule').sort(), Object.keys(rules.items.properties).sort())
})

t.test('docs/reference/cli.md has every command and option', async t => {
  const page = reference('cli')
  for (const command of helps.keys()) {
    const name = `fastsockets ${command}`.trim()
    const options = optionsOf(helps, command).filter(option => !['--help', '--version'].includes(option))
    const shown = optionsShown(page, command)
    t.ok(page.includes(`\`${name}`) || command === '', name)
    t.strictSame([...shown].sort(), options.sort(), name)
  }
})

t.test('docs/reference/api.md has every name that the package exports', async t => {
  const page = reference('api')
  for (const [door, file] of doors) {
    const names = exportsOf(types, file)
    const missing = (door === 'fastsockets/index' ? names.filter(isNotOfNet) : names).filter(
      name => !new RegExp(`\`(new )?${name}\\b`).test(page),
    )
    t.strictSame(missing, [], door)
  }
})

t.test('docs/reference/metrics.md has every metric of programs', async t => {
  const told = new Set(codeRows(reference('metrics')).map(name => name.replace(/\{.*/, '')))
  const program = readFileSync(join(CHECKOUT, 'fastsockets/metrics.ts'), 'utf8')
  const own = [...program.matchAll(/(?:gauge|counter)\('(\w+)'|^ {2}(?:gauge|counter)\(\n {4}'(\w+)'/gm)]
  for (const [, a, b] of own) t.ok(told.has(`fastsockets_${a ?? b}`), `fastsockets_${a ?? b}`)
})

t.test('the picture and the figures of README.md are those of bench/baseline.json', async t => {
  const report = readReport(join(CHECKOUT, 'bench/baseline.json'))
  const hint = 'node dist/bench/document/main.js bench/baseline.json writes them'
  const picture = await readmePicture(report)
  t.equal(readFileSync(join(CHECKOUT, 'docs', README_PICTURE), 'utf8'), picture, hint)
  t.equal(await readmePicture(report), picture, 'drawn again, it is the same text')
  const { text } = pageOf('README.md')
  t.equal(text, withFigures(text, report), hint)
})

t.test('TypeScript blocks and programs compile with the declarations of the package', async t => {
  t.equal(faultsOf(types), '')
})

t.test(
  'the package: its links lead somewhere, and the blocks of README.md and the guide run in it',
  async t => {
    const { folder, packaged } = application
    const own = pages.filter(({ path }) => packaged.has(path))
    for (const page of guide) t.ok(packaged.has(page.path), `${page.path} is in the package`)
    for (const page of own)
      t.strictSame(
        brokenLinks(page, path => isPackaged(packaged, path)),
        [],
        page.path,
      )
    for (const file of packaged) {
      if (!/\.d\.c?ts$/.test(file)) continue
      const text = readFileSync(join(folder, 'node_modules/fastsockets', file), 'utf8')
      for (const [named] of text.matchAll(/\b[\w/-]+\.md\b/g))
        t.ok(
          isPackaged(packaged, named) || isPackaged(packaged, join(dirname(file), named)),
          `${file}: ${named}`,
        )
    }
    // They mostly wait: for processes to start, and for servers to listen.
    t.jobs = PAGES_AT_ONCE
    const longest = { timeout: RUN_MS_MAX, buffered: true }
    t.test('programs that install it', longest, t => tryPackage(t, application))
    for (const page of guide)
      t.test(page.path, { timeout: RUN_MS_MAX, buffered: true }, t => runPage(t, application, page))
  },
)

/** Links to what is not there. */
function brokenLinks({ path, text }: Page, isThere: (path: string) => boolean): string[] {
  return linksOf(text).filter(link => {
    if (/^[a-z]+:/.test(link)) return false
    const [file = '', anchor] = link.split('#')
    const target = file === '' ? path : normalize(join(dirname(path), file)).replace(/\/$/, '')
    if (!isThere(target)) return true
    const page = pages.find(page => page.path === target)
    return anchor !== undefined && page !== undefined && !anchorsOf(page.text).has(anchor)
  })
}

function isPackaged(packaged: ReadonlySet<string>, path: string): boolean {
  return packaged.has(path) || [...packaged].some(file => file.startsWith(`${path}/`))
}

/** Every `FASTSOCKETS_…` that code reads or sets, but for error codes and the settings of the daemon, which are a pattern. */
function variablesOfSources(): Set<string> {
  const names = filesBelow(SOURCES).flatMap(
    file => readFileSync(file, 'utf8').match(/(?<!ERR_)\bFASTSOCKETS_[A-Z][A-Z0-9_]*[A-Z0-9]\b/g) ?? [],
  )
  return new Set(names.filter(isOurs))
}

function isOurs(name: string): boolean {
  return (
    name.startsWith('FASTSOCKETS_') &&
    !WARNINGS.has(name) &&
    (!name.startsWith('FASTSOCKETS_NAMED_') || name === 'FASTSOCKETS_NAMED_CONFIG')
  )
}

function filesBelow(folders: readonly string[]): string[] {
  return folders.flatMap(folder =>
    readdirSync(join(CHECKOUT, folder), { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile() && !/docs\.test\.ts$/.test(entry.name))
      .map(({ parentPath, name }) => join(parentPath, name)),
  )
}

/** The options in the list of a command: its lines begin with the option. So do those of the daemon's settings. */
function optionsShown(page: string, command: string): Set<string> {
  const heading = new RegExp(`^#{2,3} \`fastsockets ${command}\`.*$`, 'm').exec(page)
  if (heading === null) return new Set()
  const [section = ''] = page.slice(heading.index + heading[0].length).split(/\n#{2,3} /)
  const list = [...section.matchAll(/^- `(--[\w-]+)/gm)].map(([, option = '']) => option)
  const settings = LEAVES.filter(({ path }) => section.includes(`\n- \`${path.join('.')}\``))
  const flags = command === 'named' ? settings.map(flagOf) : []
  return new Set([...flags, ...list])
}

function isNotOfNet(name: string): boolean {
  return (
    /Event$|^(Transport|transportOf|RequiredError|FALLBACK_REASONS|FallbackCode|FallbackReason|default)$/.test(
      name,
    ) && name !== 'default'
  )
}
