/** The house rules that no compiler checks: which file may import which, and how long a file may be. */
import { isAscii } from 'node:buffer'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import ts from 'typescript'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const LINES_MAX = 700
/** Of the part `preload`: V8 reads it in about a tenth of a millisecond. */
const PRELOAD_SIZE_MAX = 18_000
/** What takes most of a millisecond or more to load, and a program without sockets has not loaded. */
const HEAVY_BUILTINS = ['crypto', 'tls', 'http', 'child_process', 'dns', 'perf_hooks'].map(
  name => `node:${name}`,
)

/** What all layers share: clocks, text of strangers, files that are obeyed. Each imports nothing of ours but the others. */
const DOORS_OF_NIC = [
  'nic/clock.ts',
  'nic/host-identity-layout.ts',
  'nic/policy-source.ts',
  'nic/own-resources.ts',
  'nic/own-sockets.ts',
  'nic/parts.ts',
  'nic/performance.ts',
  'nic/posix/core-times.ts',
  'nic/posix/own-user.ts',
  'nic/real-time.ts',
  'nic/rendezvous/folder.ts',
  'nic/rendezvous/names-layout.ts',
  'nic/shown-text.ts',
  'nic/trusted-file.ts',
  'nic/verbs/kernel-devices.ts',
]
/** What the files of a layer may import: whole folders, or single doors of other layers. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  nic: ['nic/'],
  am: ['am/', 'nic/index.ts', 'nic/simulated/index.ts', ...DOORS_OF_NIC, 'nameservice/index.ts'],
  nameservice: ['nameservice/', ...DOORS_OF_NIC],
  fastsockets: [
    'fastsockets/',
    'am/channels.ts',
    'am/index.ts',
    'nic/index.ts',
    ...DOORS_OF_NIC,
    'nameservice/daemon-view.ts',
    'nameservice/index.ts',
    'nameservice/named.ts',
    'nameservice/socket-path.ts',
  ],
  tests: ['tests/', 'nic/', 'am/', 'nameservice/', 'fastsockets/', 'bench/'],
  bench: ['bench/', 'nic/', 'am/', 'nameservice/', 'fastsockets/'],
}
/** Its folders, from the ground up: each imports only what lies below it, and the files at the top of the layer may import all. */
const FLOORS_OF_FASTSOCKETS: readonly (readonly string[])[] = [
  ['host'],
  ['policy'],
  ['bootstrap'],
  ['status'],
  ['stream'],
  ['handle'],
  ['promotion'],
  ['connect'],
  ['datagram'],
  ['raw', 'relink'],
  ['cli'],
]
/** Below all of them. */
const GROUND = 'fastsockets/reasons.ts'
/** Layers that users install; what they import from npm must come along. */
const SHIPPED = ['nic', 'am', 'nameservice', 'fastsockets']
/** Loaded only by those who import it, and who have its packages: optional peer dependencies. */
const CONNECT = 'am/rpc/connect/'
/** Other people's programs, as the demo runs them: it says how to install what is missing. */
const STRANGERS = 'fastsockets/cli/demo/programs/'

/** Files that may still be in an import cycle. The list only shrinks: a file that is in none any more must leave it. */
const STILL_IN_CIRCLES: readonly string[] = []

/** Assertions that hold whatever happens. A test that cannot run calls `skipHere`, or has the option `skip`. */
const CANNOT_FAIL = /\bt\.(?:ok\(true\b|pass\((?![^\n]*\bskip:))[^\n]*|return t\.comment\([^\n]*/g

interface Package {
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
}
const { dependencies, devDependencies, peerDependencies } = JSON.parse(
  readFileSync(join(ROOT, 'package.json'), 'utf8'),
) as Package

/** Every source file of a layer, as a path from the root. */
function sourcesOf(layer: string): string[] {
  const folder = join(ROOT, layer)
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter(name => /\.[cm]?ts$/.test(name) && !/\.d\.[cm]?ts$/.test(name))
    .map(name => posix.join(layer, name))
}

/** Every file's imports of ours, types included. */
function importGraph(files: readonly string[]): Map<string, string[]> {
  const known = new Set(files)
  const importsIn = (file: string): string[] =>
    importsOf(readFileSync(join(ROOT, file), 'utf8'))
      .filter(specifier => specifier.startsWith('.'))
      .map(specifier => posix.join(posix.dirname(file), specifier))
      .filter(target => known.has(target))
  return new Map(files.map(file => [file, importsIn(file)]))
}

/** The shortest way along imports from `file` back to it; undefined if there is none. */
function circleOf(graph: ReadonlyMap<string, readonly string[]>, file: string): string[] | undefined {
  const cameFrom = new Map<string, string>()
  for (const queue = [file]; queue.length > 0; ) {
    const here = queue.shift() as string
    for (const next of graph.get(here) ?? []) {
      if (cameFrom.has(next)) continue
      cameFrom.set(next, here)
      queue.push(next)
    }
  }
  if (!cameFrom.has(file)) return undefined
  const way = [file]
  do way.unshift(cameFrom.get(way[0] as string) as string)
  while (way[0] !== file)
  return way
}

function importsOf(source: string): string[] {
  return ts.preProcessFile(source, true, true).importedFiles.map(file => file.fileName)
}

const TOP = FLOORS_OF_FASTSOCKETS.length

/** `TOP` for the files of fastsockets that are in no folder, -1 for other layers. */
function floorOf(file: string): number {
  if (!file.startsWith('fastsockets/')) return -1
  const floor = FLOORS_OF_FASTSOCKETS.findIndex(folders => folders.includes(folderOf(file)))
  return floor === -1 ? TOP : floor
}

function folderOf(file: string): string {
  return file.split('/')[1] as string
}

/** What is wrong with `file` importing `specifier`, or undefined. */
function complaintAbout(file: string, specifier: string): string | undefined {
  const layer = file.split('/')[0] as string
  if (!specifier.startsWith('.')) return complaintAboutPackage(file, specifier)
  const target = posix.join(posix.dirname(file), specifier)
  const here = floorOf(file)
  const there = floorOf(target)
  const isAcross = there > here || (there === here && folderOf(file) !== folderOf(target))
  if (here >= 0 && here < TOP && isAcross && target !== GROUND)
    return `${folderOf(file)} may not import ${target}`
  const allowed = MAY_IMPORT[layer] ?? []
  const isAllowed = allowed.some(door => (door.endsWith('/') ? target.startsWith(door) : target === door))
  return isAllowed ? undefined : `${layer} may not import ${target}`
}

function complaintAboutPackage(file: string, specifier: string): string | undefined {
  if (isBuiltin(specifier)) return specifier.startsWith('node:') ? undefined : `say node:${specifier}`
  const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
  if (name in dependencies || (name in peerDependencies && file.startsWith(CONNECT))) return undefined
  const isShipped = SHIPPED.some(layer => file.startsWith(`${layer}/`)) && !file.startsWith(STRANGERS)
  if (!isShipped && name in devDependencies) return undefined
  return `${name} is no dependency of the package`
}

t.test('every layer imports only what lies below it, and through its door', async t => {
  const layers = Object.keys(MAY_IMPORT)
  const wrong: string[] = []
  for (const file of layers.flatMap(sourcesOf)) {
    for (const specifier of importsOf(readFileSync(join(ROOT, file), 'utf8'))) {
      const complaint = complaintAbout(file, specifier)
      if (complaint !== undefined) wrong.push(`${file}: ${complaint}`)
    }
  }
  t.strictSame(wrong, [])
  for (const layer of SHIPPED) t.ok(sourcesOf(layer).length > 0, `${layer} was looked at`)
})

t.test('a wrong arrow is found, whatever kind of import it is', async t => {
  const kinds = (target: string): string[] => [
    `import { x } from '${target}'`,
    `import type { X } from '${target}'`,
    `import '${target}'`,
    `export * from '${target}'`,
    `const x = await import('${target}')`,
    `import x = require('${target}')`,
    `const x = require('${target}')`,
  ]
  const wrong: [file: string, target: string][] = [
    ['nic/shm/shm-driver.ts', '../../am/index.ts'],
    ['nic/index.ts', '../tests/support/until.ts'],
    ['am/channel.ts', '../nic/nic.ts'],
    ['am/channel.ts', '../nic/shm/shm-driver.ts'],
    ['am/channel.ts', '../nameservice/client/target.ts'],
    ['am/index.ts', '../fastsockets/index.ts'],
    ['nameservice/index.ts', '../nic/index.ts'],
    ['fastsockets/cli/main.ts', '../../am/channel.ts'],
    ['fastsockets/cli/main.ts', '../../bench/main.ts'],
    ['fastsockets/connect/peers.ts', '../../nic/loopback/loopback-driver.ts'],
    ['fastsockets/stream/stream.ts', '../handle/fast-handle.ts'],
    ['fastsockets/host/addresses.ts', '../index.ts'],
    ['fastsockets/raw/index.ts', '../relink/install.ts'],
    ['bench/main.ts', '../tests/support/until.ts'],
    ['am/channel.ts', 'typescript'],
    ['am/rpc/client.ts', '@connectrpc/connect'],
    ['am/channel.ts', '@biomejs/biome/x'],
    ['nic/shm/shm-driver.ts', 'fs'],
  ]
  for (const [file, target] of wrong) {
    for (const source of kinds(target)) {
      t.strictSame(importsOf(source), [target], source)
      t.ok(complaintAbout(file, target), `${file}: ${source}`)
    }
  }
})

t.test('a right arrow is left alone', async t => {
  const right: [file: string, target: string][] = [
    ['am/channel.ts', '../nic/index.ts'],
    ['am/channel.ts', './message.ts'],
    ['nic/shm/shm-driver.ts', '../posix/libc.ts'],
    ['nic/shm/shm-driver.ts', 'node:fs'],
    ['fastsockets/cli/main.ts', '../relink/install.ts'],
    ['fastsockets/host/addresses.ts', '../reasons.ts'],
    ['fastsockets/index.ts', './relink/install.ts'],
    ['fastsockets/connect/peers.ts', '../../nameservice/index.ts'],
    ['fastsockets/connect/peers.ts', 'debug'],
    ['tests/am/channel.test.ts', '../../am/message-layout.ts'],
    ['fastsockets/cli/demo/programs/ftp-client.ts', 'basic-ftp'],
    ['tests/am/channel.test.ts', 'tap'],
  ]
  for (const [file, target] of right) t.equal(complaintAbout(file, target), undefined, `${file}: ${target}`)
})

t.test('no test asserts what cannot fail, and none passes where it skips', async t => {
  const wrong = sourcesOf('tests').flatMap(file => {
    const source = readFileSync(join(ROOT, file), 'utf8')
    return Array.from(source.matchAll(CANNOT_FAIL), ([text]) => `${file}: ${text}`)
  })
  t.strictSame(wrong, [])
  const found = (text: string): number => Array.from(`  t.${text}\n`.matchAll(CANNOT_FAIL)).length
  for (const text of ['ok(true)', "pass('x')"]) t.equal(found(text), 1, text)
  t.equal(found("pass('x', { skip: 'y' })"), 0)
})

t.test('at most three test files get a second chance, each with a reason', async t => {
  const lines = readFileSync(join(ROOT, 'tests/second-chances.txt'), 'utf8').trim().split('\n')
  const chances = lines.filter(line => !line.startsWith('#'))
  t.ok(chances.length <= 3, chances.join('; '))
  for (const chance of chances) {
    const [, file = '', reason = ''] = /^([^:]+): (.+)$/.exec(chance) ?? []
    t.ok(existsSync(join(ROOT, `tests/${file}.test.ts`)), chance)
    t.ok(reason !== '', chance)
  }
})

t.test('no file imports itself by way of others, types included', async t => {
  const graph = importGraph(Object.keys(MAY_IMPORT).flatMap(sourcesOf))
  const circles = new Map<string, string>()
  for (const file of graph.keys()) {
    const circle = circleOf(graph, file)
    if (circle !== undefined) circles.set(file, circle.join(' -> '))
  }
  const wrong = [...circles].filter(([file]) => !STILL_IN_CIRCLES.includes(file)).map(([, circle]) => circle)
  t.strictSame(wrong, [])
  const free = STILL_IN_CIRCLES.filter(file => !circles.has(file))
  t.strictSame(free, [], 'files that are in no circle any more leave the list')
})

t.test('a circle is found, and its shortest way', async t => {
  const graph = new Map([
    ['a', ['b', 'd']],
    ['b', ['c']],
    ['c', ['d', 'a']],
    ['d', ['e']],
    ['e', ['e']],
    ['f', ['a']],
  ])
  t.strictSame(circleOf(graph, 'a'), ['a', 'b', 'c', 'a'])
  t.strictSame(circleOf(graph, 'e'), ['e', 'e'])
  for (const file of ['d', 'f']) t.equal(circleOf(graph, file), undefined, file)
})

t.test(`no source file is longer than ${LINES_MAX} lines`, async t => {
  const long: string[] = []
  for (const file of Object.keys(MAY_IMPORT).flatMap(sourcesOf)) {
    const count = readFileSync(join(ROOT, file), 'utf8').trimEnd().split('\n').length
    if (count > LINES_MAX) long.push(`${file}: ${count} lines`)
  }
  t.strictSame(long, [])
  const rules = readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8')
  t.ok(rules.includes(`more than ${LINES_MAX} lines`), 'CONTRIBUTING.md says so')
})

t.test('the preload is light: every relinked program loads it, one without sockets, too', t => {
  const folder = join(ROOT, 'dist/fastsockets/relink')
  const [, part = ''] =
    /'(.\/preload-.*?)'/.exec(readFileSync(join(folder, 'preload.part.cjs'), 'utf8')) ?? []
  const text = readFileSync(join(folder, part), 'utf8')
  t.ok(text.length <= PRELOAD_SIZE_MAX, `${text.length} bytes`)
  const loaded = [...text.matchAll(/require\('(node:[^']+)'\)/g)].map(([, name]) => name)
  t.strictSame(
    loaded.filter(name => HEAVY_BUILTINS.includes(name as string)),
    [],
  )
  t.end()
})

t.test('what relinked programs load is ASCII, which V8 keeps in one byte a character', async t => {
  const parts = SHIPPED.flatMap(layer =>
    readdirSync(join(ROOT, 'dist', layer), { recursive: true, encoding: 'utf8' })
      .filter(name => name.endsWith('.cjs'))
      .map(name => join(layer, name)),
  )
  t.ok(parts.some(name => name.startsWith('fastsockets/relink/install-')))
  const wide = parts.filter(name => !isAscii(readFileSync(join(ROOT, 'dist', name))))
  t.strictSame(wide, [])
})
