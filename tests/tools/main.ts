/**
 * `npm run test:tools`: tries every row of the table in docs/guide/typescript-and-tools.md with the versions that stand there. The
 * tools come from npm, into a folder that is removed at the end. Exit code: 0 every wire was the one in the table, 1 not.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { CHECKOUT } from '../docs/application.ts'
import { plainEnvironment } from '../support/child.ts'
import { freePort } from '../support/ports.ts'
import { eventually } from '../support/until.ts'

const run = promisify(execFile)
const PAGE = join(CHECKOUT, 'docs/guide/typescript-and-tools.md')
const ROW = /^\| ([\w-]+) (\d[\d.]*) \| (.+?) \| (.+?) \|$/gm
const RELINKED = ['--import', 'fastsockets/register']
/** What the packages of tools with binaries for each platform are called. */
const BINARIES: Record<string, string> = { Bun: '@oven/bun-linux-x64', Deno: '@deno/linux-x64-glibc' }
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
  'package.json': '{ "private": true }',
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
  'server.js':
    "require('node:net').createServer(socket => socket.pipe(socket)).listen(Number(process.env.PORT), '127.0.0.1')",
  'wire.test.js': `${REQUIRES}test('wire', done => {${plain(CLIENT)}socket.on('close', () => setTimeout(done, 50)) })`,
  'vitest.test.mjs': `${IMPORTS}import { test } from 'vitest'
test('wire', () => new Promise(done => {${plain(CLIENT)}socket.on('close', () => setTimeout(done, 50)) }))`,
  'rollup.config.mjs':
    "export default { input: 'entry.mjs', external: id => id.startsWith('node:') || id === 'fastsockets', output: { file: 'rollup.mjs', format: 'es' } }",
  'webpack.config.cjs':
    "module.exports = { target: 'node', mode: 'production', entry: './entry.mjs', output: { filename: 'webpack.cjs', path: __dirname }, externals: { fastsockets: 'commonjs fastsockets' } }",
}
const folder = mkdtempSync(join(tmpdir(), 'fastsockets-tools-'))
const rows = [...readFileSync(PAGE, 'utf8').matchAll(ROW)].map(
  ([, tool = '', version = '', how = '', wire = '']) => ({
    tool,
    version,
    how,
    wire: wire.replaceAll('`', ''),
  }),
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
    const isRight = row.wire.startsWith('fails') ? found.startsWith('fails') : found === row.wire
    if (!isRight) failures++
    console.log(`${isRight ? 'ok    ' : 'NOT OK'} ${row.tool} ${row.version}: ${row.how}: ${found}`)
  }
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
}
process.exitCode = rows.length > 0 && failures === 0 ? 0 : 1

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
  const tools = new Set(rows.map(({ tool, version }) => `${BINARIES[tool] ?? tool}@${version}`))
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--legacy-peer-deps']
  await run('npm', ['install', ...flags, `./${packed}`, ...tools, ...BESIDE], { cwd: folder, env })
}

/** The wire of the client, by the command of a row: either the client or the server is what the tool starts. */
async function wireOf(tool: string, how: string): Promise<string> {
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
  const sh = async (command: string): Promise<void> => {
    await run('sh', ['-c', command], { cwd: folder, env, timeout: 60_000 })
  }
  const command = commandOf(tool, how)
  const isServer = how.includes('server.js')
  const server = isServer
    ? spawn('sh', ['-c', command], { cwd: folder, env, detached: true, stdio: 'ignore' })
    : spawn(process.execPath, [...RELINKED, 'server.js'], {
        cwd: folder,
        env,
        detached: true,
        stdio: 'ignore',
      })
  try {
    await eventually('the server listens', () => isListening(port))
    await sh(isServer ? `node ${RELINKED.join(' ')} client.js` : command)
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
  if (tool === 'esbuild')
    return 'esbuild entry.mjs --bundle --platform=node --packages=external --outfile=esbuild.cjs --log-level=error && node esbuild.cjs'
  if (tool === 'rollup') return 'rollup -c --silent && node rollup.mjs'
  if (tool === 'webpack') return 'webpack && node webpack.cjs'
  if (tool === 'jest') return `${how} --testMatch '**/wire.test.js'`
  if (tool === 'vitest') return `${how} vitest.test.mjs`
  return how
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
