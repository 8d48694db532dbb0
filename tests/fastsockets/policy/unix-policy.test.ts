/** The policy for unix sockets: kept in the kernel, required, and explained. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { Child, plainEnvironment } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'

const CLI = fileURLToPath(new URL('../../../fastsockets/cli/main.js', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'fastsockets-policy-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
const path = join(folder, 'app.sock')

const plain = plainEnvironment()
const kernel = under(`rules: [{ path: ${folder}/*.sock, use: tcp }]`, 'kernel')
const required = under('rules: [{ path: "*.sock", use: require }]', 'required')

/** An environment in which `text` is the policy. */
function under(text: string, name: string): NodeJS.ProcessEnv {
  const file = join(folder, `${name}.yaml`)
  writeFileSync(file, text)
  return { ...plainEnvironment(), FASTSOCKETS_POLICY: file }
}

async function startServer(t: Test, env: NodeJS.ProcessEnv, where = path): Promise<void> {
  rmSync(path, { force: true })
  const server = new Child(t, program('unix'), ['server', where], relinked({ env }))
  await server.receive()
}

/** What became of a relinked client. */
async function outcome(t: Test, env: NodeJS.ProcessEnv, where = path): Promise<unknown> {
  return await new Child(t, program('unix'), ['client', where], relinked({ env })).receive()
}

t.test('a client that a rule keeps in the kernel', async t => {
  await startServer(t, plain)
  t.match(await outcome(t, plain), { transport: 'shm' })
  t.match(await outcome(t, kernel), { transport: 'pipe', reason: { code: 'POLICY', text: /rule 1 of/ } })
})

t.test('a server that a rule keeps in the kernel, and a client that must not be', async t => {
  await startServer(t, kernel)
  t.match(await outcome(t, plain), { transport: 'pipe', reason: { code: 'NOT_RELINKED' } })
  t.match(await outcome(t, required), { failed: 'ERR_FASTSOCKETS_REQUIRED' })
})

t.test('abstract names begin with @', async t => {
  await startServer(t, plain, `@${path}`)
  const env = under('rules: [{ path: "@**", use: tcp }]', 'abstract')
  t.match(await outcome(t, env, `@${path}`), { transport: 'pipe', reason: { code: 'POLICY' } })
})

t.test('a server that must be fast hangs up on others; explain says what holds', async t => {
  await startServer(t, required)
  t.match(await new Child(t, program('unix'), ['client', path]).receive(), { ended: true })
  const explain = (env: NodeJS.ProcessEnv) =>
    spawnSync(process.execPath, [CLI, 'explain', `unix:${path}`], { env, encoding: 'utf8' })
  const fast = explain(plain)
  t.equal(fast.status, 0)
  t.ok(fast.stdout.startsWith(`unix:${path}  shm\n`), fast.stdout)
  t.match(explain(kernel), {
    status: 1,
    stdout: /app.sock {2}pipe\n {4}policy {2}tcp: rule 1 of .*\n {4}reason {2}POLICY/,
  })
})
