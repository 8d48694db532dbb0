/** A program that is required to be relinked shares its first turn with that: it must not see anything of it. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { plainEnvironment } from '../support/child.ts'

const REGISTER = fileURLToPath(new URL('../../fastsockets/register.cjs', import.meta.url))
const IMPORTED = new URL('../../fastsockets/register.js', import.meta.url).href
const PROGRAM = fileURLToPath(new URL('./programs/first-turn.cjs', import.meta.url))
const TIMEOUT_MS = 20_000
const isRequirable = process.features.require_module === true

interface Output {
  readonly error: Error | null
  readonly stdout: string
  readonly stderr: string
}

function run(
  flags: readonly string[],
  args: readonly string[],
  variables: NodeJS.ProcessEnv = {},
): Promise<Output> {
  return new Promise(resolve => {
    execFile(
      process.execPath,
      [...flags, ...args],
      { env: { ...plainEnvironment(), ...variables }, timeout: TIMEOUT_MS },
      (error, stdout, stderr) => {
        resolve({ error, stdout, stderr })
      },
    )
  })
}

t.test('first turns are the same', { skip: !isRequirable && 'needs require(esm)' }, async t => {
  const plain = await run(['--expose-gc'], [PROGRAM])
  t.equal(plain.error, null, plain.stderr)
  t.match(JSON.parse(plain.stdout), {
    unknown: [],
    workerSend: [true, 'process.send() is not supported in workers'],
  })
  t.strictSame(await run(['--require', REGISTER, '--expose-gc'], [PROGRAM]), plain)
})

/** For V8 in Node 20, which then has no Atomics; a later one does not know the flag. */
const FLAG = '--no-harmony-atomics'

t.test('without shared memory in V8 a program runs as it does plain', async t => {
  const plain = await run([FLAG], ['-p', 'typeof Atomics'])
  if (plain.error !== null) return t.match(plain.stderr, 'bad option')
  return t.strictSame(await run(['--require', REGISTER, FLAG], ['-p', 'typeof Atomics']), plain)
})

t.test('a program may close its standard output and error', async t => {
  for (const fds of [[1], [2], [0, 1, 2]]) {
    const program = `for (const fd of ${JSON.stringify(fds)}) fs.closeSync(fd)`
    const { error } = await run(['--import', IMPORTED], ['-e', program])
    t.equal(error, null, `without ${fds}`)
  }
})

t.test('logs are printed for the names in DEBUG, and no others', async t => {
  const relink = ['--import', IMPORTED]
  const listening = 'net.createServer().listen(0, function () { this.close() })'
  t.match(await run(relink, ['-e', listening], { DEBUG: 'fastsockets:*' }), { stderr: /fastsockets:install/ })
  t.equal((await run(relink, ['-e', '0'], { DEBUG: 'other' })).stderr, '')
  t.equal((await run(relink, ['-e', '0'])).stderr, '')
})
