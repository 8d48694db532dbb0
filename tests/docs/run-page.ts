/**
 * Runs the blocks of a page in their order, in a folder of the page's own:
 *
 *   js        a program. With `// name.mjs` as its first line it is written to that file; if a shell block names the file,
 *             the shell block runs it, otherwise it is run by itself. It must end with 0.
 *   ts        a program that the compiler must accept in strict mode: see types.ts.
 *   sh        a script. It must end with 0; what it leaves running is ended.
 *   text      directly behind js, ts or sh: what that has printed. With `figures vary`, each line must be found, in order, and
 *             numbers and spaces may be others.
 *   yaml      a policy, for `fastsockets policy check`. With `# named.yaml` as its first line, settings for `fastsockets named`;
 *             with another name it must only be YAML.
 *   json      must be JSON.
 *   ini       a systemd unit, for `systemd-analyze verify` if that is there.
 *
 * Ports from 7000 to 7099 become free ones. installApplication has packed and installed the package: a block that says how
 * links its node_modules. README.md calls npm's npx; the guide calls NPX.
 */
import { execFile, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import { parse } from 'yaml'
import { freePort } from '../support/ports.ts'
import { type Application, folderOfPage } from './application.ts'
import { type Block, blocksOf, type Page } from './markdown.ts'

const PORT = /\b70\d\d\b/g
const NAME = /^(?:\/\/|#) (\S+\.\w+)\n/
/** Lines of output that a failure shows. */
const PRINTED_MAX = 30
const COMMAND_MS_MAX = 120_000
/** What the shell blocks may call: `background` waits for the first output of what it has started. */
const PRELUDE = `set -euo pipefail
background() {
  for _ in $(seq 600); do
    if [ -s "$1" ] || ! kill -0 "$2" 2> /dev/null; then sleep 0.3; return; fi
    sleep 0.1
  done
  echo "no output of a background command within a minute" >&2
  exit 1
}
`
/** Calls the commands that npm's npx would find, without half a second of npm for each. */
const NPX = 'npx() { "$@"; }\n'

interface Output {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export async function runPage(t: Test, application: Application, page: Page): Promise<void> {
  const { directory, env } = folderOfPage(application, page.path)
  writeYourApp(directory)
  const prelude = page.path === 'README.md' ? PRELUDE : PRELUDE + NPX
  const blocks = blocksOf(await substituted(page.text, application))
  const scripts = blocks.filter(({ language }) => language === 'sh').map(({ text }) => text)
  const path = `${join(application.folder, 'node_modules/.bin')}:${dirname(process.execPath)}:${env.PATH}`
  const own = { directory, prelude, env: { ...env, PATH: path } }
  let last: Output | undefined
  for (const block of blocks) {
    const place = `${page.path}:${block.line}`
    const missing = block.needs.find(command => spawnSync('which', [command]).status !== 0)
    if (missing !== undefined) t.pass(`${place}: not run, as there is no ${missing}`, { skip: true })
    if (block.notRun !== undefined || missing !== undefined) {
      last = undefined
      continue
    }
    last = await runBlock(t, own, block, place, scripts, last)
  }
}

interface Place {
  readonly directory: string
  readonly prelude: string
  readonly env: NodeJS.ProcessEnv
}

async function runBlock(
  t: Test,
  own: Place,
  block: Block,
  place: string,
  scripts: readonly string[],
  last: Output | undefined,
): Promise<Output | undefined> {
  const name = NAME.exec(block.text)?.[1]
  const file = fileOf(own.directory, block)
  if (block.language !== 'text' && block.language !== 'sh') {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, block.text)
  }
  switch (block.language) {
    case 'js':
      if (name !== undefined && scripts.some(script => script.includes(name))) return undefined
      return expectSuccess(t, await node(own, file), place)
    case 'ts':
      return undefined
    case 'sh':
      return expectSuccess(t, await shell(own, block.text), place)
    case 'text':
      if (last !== undefined) expectOutput(t, last, block, place)
      return last
    case 'yaml':
      await checkYaml(t, own, name, file, place)
      return last
    case 'json':
      t.doesNotThrow(() => JSON.parse(block.text), place)
      return last
    case 'ini':
      await checkUnit(t, own, file, place)
      return last
    default:
      t.fail(`${place}: a block in ${block.language || 'no language'} is not run by the tests`)
      return undefined
  }
}

const EXTENSIONS: Record<string, string> = { js: 'mjs', ts: 'mts', ini: 'service' }

function fileOf(directory: string, { language, line, text }: Block): string {
  return join(directory, NAME.exec(text)?.[1] ?? `line-${line}.${EXTENSIONS[language] ?? language}`)
}

/** Writes the ts blocks of a page into the page's folder; returns their files. */
export function writeTypeScript(application: Application, page: Page): string[] {
  const { directory } = folderOfPage(application, page.path)
  const blocks = blocksOf(page.text).filter(
    ({ language, notRun }) => language === 'ts' && notRun === undefined,
  )
  return blocks.map(block => {
    const file = fileOf(directory, block)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, block.text)
    return file
  })
}

async function substituted(text: string, { folder }: Application): Promise<string> {
  const ports = new Map<string, string>()
  for (const [port] of text.matchAll(PORT)) if (!ports.has(port)) ports.set(port, String(await freePort()))
  return text
    .replace(PORT, port => ports.get(port) as string)
    .replaceAll('npm ci && npm pack', 'true')
    .replaceAll('npm install /path/to/fastsockets-0.1.0.tgz', `ln -s ${folder}/node_modules .`)
    .replaceAll('cd /path/to/your-app', 'cd your-app')
}

/** The application that README.md and the guide speak of: it echoes, and its client has much to say, then stays connected. */
function writeYourApp(directory: string): void {
  const folder = join(directory, 'your-app')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  writeFileSync(
    join(folder, 'server.js'),
    `const server = require('net').createServer(socket => socket.pipe(socket))
server.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => {
  require('fs').writeFileSync('port', String(server.address().port))
  console.log('listening')
})\n`,
  )
  writeFileSync(
    join(folder, 'client.js'),
    `const socket = require('net').connect(Number(require('fs').readFileSync('port', 'utf8')), '127.0.0.1')
socket.write('hello')
socket.once('data', () => console.log('connected'))
let left = 1e6
socket.on('data', () => left-- > 0 && socket.write('hello'))\n`,
  )
}

function expectSuccess(t: Test, output: Output, place: string): Output {
  t.equal(
    output.code,
    0,
    `${place}: ${output.code === 0 ? 'ran' : `exit ${output.code}\n${output.stdout}\n${output.stderr}`}`,
  )
  return output
}

function expectOutput(t: Test, { stdout, stderr }: Output, block: Block, place: string): void {
  if (block.info !== 'figures vary') return void t.equal(stdout, block.text, place)
  const printed = `${stdout}\n${stderr}`.split('\n').map(withoutFigures)
  let at = 0
  for (const line of block.text.trim().split('\n').map(withoutFigures)) {
    const found = printed.indexOf(line, at)
    t.not(
      found,
      -1,
      `${place}: ${line}${found === -1 ? `\nis not in\n${printed.slice(-PRINTED_MAX).join('\n')}` : ''}`,
    )
    at = found + 1
  }
}

function withoutFigures(line: string): string {
  return line
    .replace(/\S*\/(your-app|pages)\S*?\/?([^/\s]+\.m?js)/g, '/$2')
    .replace(/\d[\d.,]*(?:\s?(?:[kMG]?(?:B|s)|us|ms|ns|%|k|M|G)(?!\w))?/g, '#')
    .replace(/\s+/g, ' ')
    .trim()
}

function node({ directory, env }: Place, ...args: readonly string[]): Promise<Output> {
  return new Promise(resolve => {
    const options = { cwd: directory, env, timeout: COMMAND_MS_MAX }
    execFile(process.execPath, args, options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), stdout, stderr })
    })
  })
}

/** In a process group of its own, all of which ends with it. */
function shell({ directory, prelude, env }: Place, text: string): Promise<Output> {
  return new Promise(resolve => {
    const script = prelude + text.replace(/^(.*?)\s*&\s*(#.*)?$/gm, inBackground)
    const child = spawn('bash', ['-c', script], {
      cwd: directory,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', data => {
      stdout += data
    })
    child.stderr.setEncoding('utf8').on('data', data => {
      stderr += data
    })
    const endGroup = (): void => {
      try {
        process.kill(-(child.pid as number), 'SIGTERM')
      } catch {
        // Nothing of it is left.
      }
    }
    const timer = setTimeout(endGroup, COMMAND_MS_MAX)
    child.once('exit', code => {
      clearTimeout(timer)
      endGroup()
      // What was left running may hold the pipes open for a moment.
      const settle = (): void => resolve({ code, stdout, stderr })
      child.once('close', settle)
      setTimeout(settle, 3000).unref()
    })
  })
}

let backgroundCount = 0

function inBackground(_: string, command: string): string {
  const file = `"$TMPDIR/background-${backgroundCount++}"`
  return `${command} > >(tee ${file}) 2>&1 &\nbackground ${file} $!`
}

async function checkYaml(
  t: Test,
  own: Place,
  name: string | undefined,
  file: string,
  place: string,
): Promise<void> {
  if (name !== undefined && !/^(policy|named)\.yaml$/.test(name))
    return void t.doesNotThrow(() => parse(readFileSync(file, 'utf8')), place)
  const check = name === 'named.yaml' ? `named --config ${file} --print-config` : `policy check ${file}`
  expectSuccess(t, await shell(own, `fastsockets ${check}\n`), place)
}

async function checkUnit(t: Test, own: Place, file: string, place: string): Promise<void> {
  const { code, stderr } = await shell(
    own,
    `command -v systemd-analyze > /dev/null || exit 77
systemd-analyze verify --man=no ${file}\n`,
  )
  if (code === 77)
    return void t.pass(`${place}: not verified, as there is no systemd-analyze`, { skip: true })
  t.equal(code, 0, `${place}: ${stderr}`)
}
