/** The runner of Node's tests, tried on a small tree made here; and the list of tests that cannot pass. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { plainEnvironment } from '../support/child.ts'
import { KERNEL_TESTS } from './kernel-tests.ts'
import { globToPattern } from './test-files.ts'

const MAIN = fileURLToPath(new URL('./main.js', import.meta.url))
const DOCUMENT = new URL('../../../docs/reference/compatibility.md', import.meta.url)

/** One of the list, in the folder that a tree made here has. */
const KNOWN = Object.keys(KERNEL_TESTS).find(name => name.startsWith('parallel/')) ?? ''

interface Output {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

function runMain(args: readonly string[]): Promise<Output> {
  return new Promise(resolve => {
    execFile(process.execPath, [MAIN, ...args], { env: plainEnvironment() }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr })
    })
  })
}

/** A tree with tests as Node has them. */
function tree(t: Test, parallel: Record<string, string>, sequential: Record<string, string> = {}): string {
  return t.testdir({ 'package.json': '{}', test: { common: {}, parallel, sequential } })
}

const CONNECT = `const net = require('net')
const server = net.createServer(s => s.end()).listen(0, '127.0.0.1', () => {
  const c = net.connect(server.address().port, '127.0.0.1').resume()
  c.on('connect', () => { check(c._handle.fd) })
  c.on('close', () => server.close())
})
`

t.test('what passes plain and fails relinked is found; the rest is told apart', async t => {
  const directory = tree(t, {
    'test-net-good.js': `const check = () => {}\n${CONNECT}`,
    'test-net-kernel.js': `const check = fd => { if (fd < 0) throw new Error('not the kernel') }\n${CONNECT}`,
    'test-net-bad.js': 'throw new Error()',
    'test-net-skipped.js': "console.log('1..0 # Skipped: not here')",
    'test-net-hangs.js': 'if (process.env.FASTSOCKETS_TEST_WITNESS) setInterval(() => {}, 1000)',
    'test-fs-other.js': 'throw new Error()',
  })
  const { code, stdout } = await runMain([directory, '--json', '--timeout', '5'])
  t.equal(code, 1)
  t.same(JSON.parse(stdout), {
    same: 1,
    sameAndFast: 1,
    useless: ['parallel/test-net-bad.js', 'parallel/test-net-skipped.js'],
    broken: ['parallel/test-net-hangs.js', 'parallel/test-net-kernel.js'],
    unsteady: [],
    expected: [],
    unexpected: [],
  })
})

/** Relinked, it fails the first time only: it leaves a mark beside itself. */
const UNSTEADY = `const { existsSync, writeFileSync } = require('fs')
const mark = __filename + '.mark'
if (process.env.FASTSOCKETS_TEST_WITNESS && !existsSync(mark)) {
  writeFileSync(mark, '')
  throw new Error('now and then')
}
`

t.test('what fails relinked now and then is a failure', async t => {
  const { code, stdout } = await runMain([tree(t, { 'test-net-unsteady.js': UNSTEADY })])
  t.equal(code, 1)
  t.match(stdout, /now and then: 1\n {2}parallel\/test-net-unsteady\.js/)
})

t.test('unless there is a reason for it in the list', async t => {
  const known = KNOWN
  const directory = tree(t, { [known.split('/')[1] ?? '']: UNSTEADY })
  const { code, stdout } = await runMain([directory, '--json'])
  t.match(JSON.parse(stdout), { broken: [], unsteady: [], expected: [known], unexpected: [] })
  t.equal(code, 0)
})

t.test('flags are passed on, and a test that is known to fail and passes is told of', async t => {
  const known = KNOWN
  const directory = tree(
    t,
    {
      'test-net-flags.js': '// Flags: --expose-gc --no-warnings\nglobal.gc()',
      [known.split('/')[1] ?? '']: '',
    },
    { 'test-net-alone.js': 'if (process.env.TEST_PARALLEL) throw new Error()' },
  )
  const { code, stdout } = await runMain([directory])
  t.equal(code, 1)
  t.match(stdout, /pass plain and relinked: 3, 0 of them/)
  t.match(stdout, `are known to fail relinked, and pass: 1\n  ${known}`)
})

t.test('wrong use says how it is meant', async t => {
  for (const args of [[], [tree(t, {})], ['.', '--jobs', '0']]) {
    const { code, stderr } = await runMain(args)
    t.equal(code, 2)
    t.match(stderr, 'usage: npm run test:node')
  }
})

t.test('globs', async t => {
  const pattern = globToPattern('{parallel,sequential}/test-{net,tls}-?*.js')
  t.ok(pattern.test('parallel/test-net-a.b.js'))
  t.ok(pattern.test('sequential/test-tls-x.js'))
  t.notOk(pattern.test('parallel/test-net-.js'))
  t.notOk(pattern.test('parallel/test-netx-a.js'))
  t.notOk(pattern.test('parallel/x/test-net-a.js'))
})

t.test(
  'docs/reference/compatibility.md lists exactly the tests that cannot pass, with the reasons',
  async t => {
    const lines = readFileSync(DOCUMENT, 'utf8').matchAll(/^- ((?:`[\w-]+\/test-[^`]+`(?:, )?)+): (.*)$/gm)
    const found = [...lines].flatMap(([, names = '', reason]) =>
      [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => [name, reason]),
    )
    t.same(Object.fromEntries(found), KERNEL_TESTS)
  },
)
