/**
 * `npm run test:tools`: tries every row of the table in docs/guide/typescript-and-tools.md with the versions that stand there, and
 * whether rules with `program` match what the user started. The tools come from npm, into a folder that is removed at the
 * end. Exit code: 0 every wire was the one in the table, 1 not.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { CANDIDATE_COUNT, hashedPort } from '../../fastsockets/bootstrap/hashed-port.ts'
import { readAllStatus } from '../../fastsockets/status/read-status.ts'
import { CHECKOUT } from '../docs/application.ts'
import { plainEnvironment } from '../support/child.ts'
import { freePort } from '../support/ports.ts'
import { eventually } from '../support/until.ts'

const run = promisify(execFile)
const PAGE = join(CHECKOUT, 'docs/guide/typescript-and-tools.md')
const ROW = /^\| ([\w-]+) (\d\S*) \| (.+?) \| (.+?) \|$/gm
const RELINKED = ['--import', 'fastsockets/register']
/** What the packages of tools with binaries for each platform are called. */
const BINARIES: Record<string, string> = { Bun: '@oven/bun-linux-x64', Deno: '@deno/linux-x64-glibc' }
/** Are there before. */
const PRESENT = ['Node', 'npm']
/** They load or start the user's program, which is the one that rules name. */
const STARTERS = ['tsx', 'ts-node', 'nodemon', 'pm2', 'npm']
const BESIDE = [
  'typescript@5.9.3',
  '@types/node@20',
  '@rollup/plugin-node-resolve',
  '@rollup/plugin-commonjs',
  'webpack-cli',
  'publint@0.3.25',
  '@arethetypeswrong/cli@0.18.5',
]

const CLIENT = `
let wire = 'tcp'
dc.subscribe('fastsockets:connection', e => { wire = e.transport })
dc.subscribe('fastsockets:fallback', e => { wire = 'TCP (' + e.reason.code + ')' })
const socket = net.connect(Number(process.env.PORT), '127.0.0.1', () => socket.end('hello'))
socket.resume().on('close', () => setImmediate(() => fs.writeFileSync(process.env.WIRE!, wire)))
`
const IMPORTS =
  "import * as net from 'node:net'\nimport * as dc from 'node:diagnostics_channel'\nimport * as fs from 'node:fs'\n"
const REQUIRES = IMPORTS.replace(/import \* as (\w+) from ('.*')/g, 'const $1 = require($2)')
const plain = (text: string): string => text.replaceAll('!', '')

const FILES: Record<string, string> = {
  'package.json': '{ "private": true, "scripts": { "start": "node client.js" } }',
  'policy.yaml':
    "rules:\n  - { program: '**/client.?s', role: client, use: tcp }\n  - { program: '**/server.js', role: server, use: tcp }\n",
  'tsconfig.json':
    '{ "compilerOptions": { "module": "commonjs", "target": "es2022", "strict": true, "types": ["node"], "esModuleInterop": true } }',
  'client.ts':
    IMPORTS +
    CLIENT.replaceAll('e.transport', '(e as { transport: string }).transport').replaceAll(
      'e.reason',
      '(e as { reason: { code: string } }).reason',
    ),
  'client.js': REQUIRES + plain(CLIENT),
  'entry.mjs': `import 'fastsockets'\n${IMPORTS}${plain(CLIENT)}`,
  'entry.cjs': `require('fastsockets')\n${REQUIRES}${plain(CLIENT)}`,
  'single.js': `require('node:module').createRequire(process.execPath)('fastsockets/register')\n${REQUIRES}${plain(CLIENT)}`,
  'outside.json': '{ "main": "client.js", "output": "outside.blob", "disableExperimentalSEAWarning": true }',
  'inside.json': '{ "main": "single.js", "output": "inside.blob", "disableExperimentalSEAWarning": true }',
  'server.js':
    "require('node:net').createServer(socket => socket.pipe(socket)).listen(Number(process.env.PORT), '127.0.0.1')",
  'wire.test.js': `${REQUIRES}test('wire', done => {${plain(CLIENT)}socket.on('close', () => setTimeout(done, 50)) })`,
  'vitest.test.mjs': `${IMPORTS}import { test } from 'vitest'
test('wire', () => new Promise(done => {${plain(CLIENT)}socket.on('close', () => setTimeout(done, 50)) }))`,
  'rollup-inside.mjs': `import resolve from '@rollup/plugin-node-resolve'
import commonjs from '@rollup/plugin-commonjs'
const output = format => ({ dir: 'inside-' + format, format, entryFileNames: '[name].' + (format === 'es' ? 'mjs' : 'cjs') })
export default { input: 'entry.mjs', external: ['koffi'], plugins: [resolve({ preferBuiltins: true }), commonjs()], output: [output('es'), output('cjs')] }`,
  'webpack-inside.cjs':
    "module.exports = ['entry.mjs', 'entry.cjs'].map(entry => ({ target: 'node', mode: 'production', entry: './' + entry, output: { filename: 'inside-' + entry + '.cjs', path: __dirname }, externals: { koffi: 'commonjs koffi' } }))",
  'rollup.config.mjs':
    "export default { input: 'entry.mjs', external: id => id.startsWith('node:') || id === 'fastsockets', output: { file: 'rollup.mjs', format: 'es' } }",
  'webpack.config.cjs':
    "module.exports = { target: 'node', mode: 'production', entry: './entry.mjs', output: { filename: 'webpack.cjs', path: __dirname }, externals: { fastsockets: 'commonjs fastsockets' } }",
}
const folder = mkdtempSync(join(tmpdir(), 'fastsockets-tools-'))
const BOTH = 'ESM and CJS'
/** In a cell behind the wire of Node 20: the other Nodes' follows. */
const NEWER = '; from Node 22 on '
const isNewer = Number(process.versions.node.split('.')[0]) >= 22
const rows = [...readFileSync(PAGE, 'utf8').matchAll(ROW)]
  .map(([, tool = '', version = '', how = '', wire = '']) => ({
    tool,
    version,
    how,
    wire: wire
      .replaceAll('`', '')
      .split(NEWER)
      .at(isNewer ? -1 : 0) as string,
  }))
  .flatMap(row =>
    row.how.includes(BOTH) ? ['ESM', 'CJS'].map(one => ({ ...row, how: row.how.replace(BOTH, one) })) : [row],
  )
let failures = 0
let packed = ''
try {
  await install()
  for (const check of ['publint --strict', 'attw --no-emoji'])
    await run('sh', ['-c', `${check} ./${packed}`], {
      cwd: folder,
      env: { ...plainEnvironment(), PATH: `${join(folder, 'node_modules/.bin')}:${process.env.PATH}` },
    }).then(
      () => console.log(`ok     ${check}`),
      ({ stdout }: { stdout: string }) => {
        failures++
        console.log(`NOT OK ${check}: ${stdout}`)
      },
    )
  for (const row of rows) {
    const found = await wireOf(row.tool, row.how.replaceAll('`', '')).catch(
      (error: Error) => `fails: ${error.message.slice(0, 300)}`,
    )
    const [, code = ''] = /^fails: (.*)/.exec(row.wire) ?? []
    report(
      row.wire.startsWith('fails') ? found.startsWith('fails') && found.includes(code) : found === row.wire,
      row,
      found,
    )
  }
  for (const row of rows.filter(({ tool, wire }) => STARTERS.includes(tool) && wire === 'shm')) {
    const found = await wireOf(row.tool, row.how.replaceAll('`', ''), 'policy.yaml')
    report(found === 'TCP (POLICY)', row, `with a rule about the program: ${found}`)
  }
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
}
process.exitCode = rows.length > 0 && failures === 0 ? 0 : 1

function report(isRight: boolean, row: { tool: string; version: string; how: string }, found: string): void {
  if (!isRight) failures++
  console.log(`${isRight ? 'ok    ' : 'NOT OK'} ${row.tool} ${row.version}: ${row.how}: ${found}`)
}

async function install(): Promise<void> {
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, name), text)
  const env = plainEnvironment()
  const { stdout } = await run(
    'npm',
    ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder],
    {
      cwd: CHECKOUT,
      env,
    },
  )
  packed = stdout.trim()
  const wanted = rows.filter(({ tool }) => !PRESENT.includes(tool))
  const tools = new Set(wanted.map(({ tool, version }) => `${BINARIES[tool] ?? tool}@${version}`))
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--legacy-peer-deps']
  await run('npm', ['install', ...flags, `./${packed}`, ...tools, ...BESIDE], { cwd: folder, env })
}

/**
 * The wire of the client, by the command of a row: either the client or the server is what the tool starts. `policy` is that of
 * what the tool starts; of a server the reason of its listener is what is returned.
 */
async function wireOf(tool: string, how: string, policy = ''): Promise<string> {
  const port = await freePort()
  const wire = join(folder, 'wire')
  rmSync(wire, { force: true })
  const bin = join(folder, 'node_modules/.bin')
  const env = {
    ...plainEnvironment(),
    PORT: String(port),
    WIRE: wire,
    FASTSOCKETS_START: 'fast',
    PATH: `${bin}:${process.env.PATH}`,
    PM2_HOME: join(folder, 'pm2'),
  }
  const policed = { ...env, FASTSOCKETS_POLICY: policy && join(folder, policy) }
  const sh = async (command: string, more: NodeJS.ProcessEnv = env): Promise<void> => {
    await run('sh', ['-c', command], { cwd: folder, env: more, timeout: 300_000 }).catch(error => {
      const [code] = /ERR_FASTSOCKETS_\w+/.exec(error.stderr) ?? []
      throw code === undefined ? error : new Error(code)
    })
  }
  const command = commandOf(tool, how)
  const isServer = how.includes('server.js')
  const server = isServer
    ? spawn('sh', ['-c', command], { cwd: folder, env: policed, detached: true, stdio: 'ignore' })
    : spawn(process.execPath, [...RELINKED, 'server.js'], {
        cwd: folder,
        env,
        detached: true,
        stdio: 'ignore',
      })
  try {
    await eventually('the server listens', () => isListening(port) && listenerOf(port) !== undefined)
    if (isServer && policy !== '') return `TCP (${listenerOf(port)?.reason})`
    // The primary of pm2 listens before its workers are ready for fast callers.
    await eventually('it listens for fast callers', () => hashedPorts(port).some(isListening))
    await (isServer ? sh(`node ${RELINKED.join(' ')} client.js`) : sh(command, policed))
    return existsSync(wire) ? readFileSync(wire, 'utf8') : 'fails: no wire was reported'
  } finally {
    endGroup(server)
    if (tool === 'pm2') await sh('pm2 kill')
  }
}

function commandOf(tool: string, how: string): string {
  const bun = 'node_modules/@oven/bun-linux-x64/bin/bun'
  const deno = 'node_modules/@deno/linux-x64-glibc/deno'
  if (tool === 'Bun') return `chmod +x ${bun} && ${how.replace('bun', bun)}`
  if (tool === 'Deno') return `chmod +x ${deno} && ${deno} run -A --node-modules-dir=manual entry.mjs`
  const inside = how.includes('inside') ? how.replace(/.*, (\w+).*/, '$1') : ''
  if (tool === 'esbuild' && inside !== '') {
    const isModule = inside === 'ESM'
    const out = `inside-esbuild.${isModule ? 'mjs' : 'cjs'}`
    return `esbuild entry.${isModule ? 'mjs' : 'cjs'} --bundle --platform=node --format=${isModule ? 'esm' : 'cjs'} --external:koffi --outfile=${out} --log-level=error && node ${out}`
  }
  if (tool === 'rollup' && inside !== '')
    return `rollup -c rollup-inside.mjs --silent && node inside-${inside === 'ESM' ? 'es/entry.mjs' : 'cjs/entry.cjs'}`
  if (tool === 'webpack' && inside !== '')
    return `webpack -c webpack-inside.cjs && node inside-entry.${inside === 'ESM' ? 'mjs' : 'cjs'}.cjs`
  if (tool === 'postject') {
    const name = how.includes('createRequire') ? 'inside' : 'outside'
    const start = name === 'inside' ? './app' : how.replace(/^.*?: /, '')
    return `node --experimental-sea-config ${name}.json && cp -f ${process.execPath} app && postject app NODE_SEA_BLOB ${name}.blob --sentinel-fuse NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2 && ${start}; code=$?; rm -f app; exit $code`
  }
  if (how.includes('koffi'))
    return 'mv node_modules/koffi . && node --import fastsockets/register client.js; mv koffi node_modules'
  if (tool === 'esbuild')
    return 'esbuild entry.mjs --bundle --platform=node --packages=external --outfile=esbuild.cjs --log-level=error && node esbuild.cjs'
  if (tool === 'rollup') return 'rollup -c --silent && node rollup.mjs'
  if (tool === 'webpack') return 'webpack && node webpack.cjs'
  if (tool === 'jest') return `${how} --testMatch '**/wire.test.js'`
  if (tool === 'vitest') return `${how} vitest.test.mjs`
  return how
}

/** The listener on `port`, as its program's status page has it. */
function listenerOf(port: number): { readonly reason?: string } | undefined {
  const listeners = readAllStatus().flatMap(({ listeners }) => listeners)
  return listeners.find(({ local }) => local.endsWith(`:${port}`))
}

function hashedPorts(port: number): number[] {
  return Array.from({ length: CANDIDATE_COUNT }, (_, candidate) => hashedPort(port, candidate))
}

/** By /proc/net/tcp, as a connection would be one more for the server. */
function isListening(port: number): boolean {
  const hex = port.toString(16).toUpperCase().padStart(4, '0')
  return new RegExp(`:${hex} 00000000:0000 0A `).test(readFileSync('/proc/net/tcp', 'utf8'))
}

function endGroup({ pid }: ChildProcess): void {
  try {
    process.kill(-(pid as number), 'SIGTERM')
  } catch {
    // It has ended by itself.
  }
}
