/** What is measured is what is said: whatever the environment of the bench brings along. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { measuredEnvironment } from '../../bench/measured-environment.ts'
import { plainEnvironment } from '../support/child.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const BENCH = fileURLToPath(new URL('../../bench/main.js', import.meta.url))
const REGISTER = new URL('../../fastsockets/register.js', import.meta.url).href

function bench(contestant: string, environment: NodeJS.ProcessEnv) {
  const args = [BENCH, 'connect', '--quick', '--rounds', '1', '--contestants', contestant]
  const env = { ...plainEnvironment(), ...environment }
  return spawnSync(process.execPath, args, { cwd: ROOT, env, encoding: 'utf8' })
}

t.test('a preload of Fast Sockets leaves plain halves plain', async t => {
  const { status, stderr } = bench('net-half-relinked', { NODE_OPTIONS: '--import fastsockets/register' })
  t.equal(status, 0, stderr)
})

t.test('a half that something relinks all the same is an error', async t => {
  const { status, stderr } = bench('net-tcp', {
    NODE_OPTIONS: `--import=data:text/javascript,import'${REGISTER}'`,
  })
  t.equal(status, 1)
  t.match(stderr, /connect, net-tcp: .*relinked, and should be plain/)
})

t.test('variables that change how it works do not reach it', async t => {
  const { status, stderr } = bench('net-relinked', { FASTSOCKETS_DISABLE: '1' })
  t.equal(status, 0, stderr)
  process.env.FASTSOCKETS_ABLATE = 'no-posting'
  const environment = measuredEnvironment(true)
  delete process.env.FASTSOCKETS_ABLATE
  t.notOk('FASTSOCKETS_ABLATE' in environment)
  t.equal(environment.FASTSOCKETS_GREETING_TIMEOUT_MS, process.env.FASTSOCKETS_GREETING_TIMEOUT_MS)
  t.equal(environment.PATH, process.env.PATH)
})
