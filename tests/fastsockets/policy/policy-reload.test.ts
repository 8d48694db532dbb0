/** A policy file that changes while two programs run under it. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { readStatusOf } from '../../../fastsockets/status/read-status.ts'
import { Child, plainEnvironment } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'
import { eventually } from '../../support/until.ts'
import type { Outcome, SeenPolicy } from '../programs/reload.ts'

const CLI = fileURLToPath(new URL('../../../fastsockets/cli/main.js', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'fastsockets-reload-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
let fileCount = 0

/** Exchanges the file in one step, as editors and deployments do. */
function write(path: string, text: string): void {
  writeFileSync(`${path}.new`, text, { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

function newFile(text: string): string {
  const path = join(folder, `${fileCount++}.yaml`)
  write(path, text)
  return path
}

function start(t: Test, path: string, ...args: string[]): Child {
  const env = {
    ...plainEnvironment(),
    FASTSOCKETS_POLICY: path,
    FASTSOCKETS_START: 'tcp',
    FASTSOCKETS_ABLATE: 'price=0',
  }
  return new Child(t, program('reload'), args, relinked({ env }))
}

async function startPair(
  t: Test,
  { server: ofServer, client: ofClient }: { server: string; client: string },
): Promise<{ server: Child; client: Child; port: string }> {
  const server = start(t, ofServer, 'server')
  const { port } = await server.receive<{ port: number }>()
  const client = start(t, ofClient, 'client', String(port))
  await client.receive()
  return { server, client, port: String(port) }
}

async function policiesOf(child: Child): Promise<SeenPolicy[]> {
  return (await child.ask<{ policies: SeenPolicy[] }>({ ask: 'events' })).policies
}

function wire(child: Child, wanted: string): Promise<unknown> {
  return eventually(`a connection over ${wanted}`, async () => {
    const wires = await child.ask<string[]>({ ask: 'wires' })
    return wires.length === 1 && wires[0] === wanted
  })
}

t.test('the connection that exists moves to TCP and back, and new ones follow the rules', async t => {
  const path = newFile('default: fast\n')
  const { server, client } = await startPair(t, { server: newFile('default: fast\n'), client: path })
  await wire(client, 'shm')
  write(path, 'rules: [{ role: client, use: tcp }]\n')
  await wire(client, 'tcp')
  await wire(server, 'tcp')
  for (const [{ pid }, role] of [
    [client, 'client'],
    [server, 'server'],
  ] as const)
    t.match(readStatusOf(pid)[0]?.sockets, [{ transport: 'tcp', role }], `shown, ${role}`)
  t.match(await client.ask({ ask: 'connect' }), { transport: 'tcp' })
  const [first] = await policiesOf(client)
  t.match(first, { file: path, version: /^[\da-f]{12}$/, ruleCount: 1, error: undefined })
  const [status] = readStatusOf(client.pid)
  t.match(status?.policy, { file: path, state: 'in force', version: first?.version, ruleCount: 1 })
  t.ok((status?.policy?.hits['1'] ?? 0) > 0, 'the rule has decided')
  write(path, 'default: fast\n')
  await wire(client, 'shm')
  await eventually('a new connection that is fast', async () => {
    return (await client.ask<Outcome>({ ask: 'connect' })).transport === 'shm'
  })
  t.equal((await policiesOf(client)).length, 2)
})

t.test('a listener is withdrawn and published again', async t => {
  const path = newFile('default: fast\n')
  const { server, client } = await startPair(t, { server: path, client: newFile('default: fast\n') })
  await wire(server, 'shm')
  const listener = () => readStatusOf(server.pid)[0]?.listeners[0]
  t.match(listener(), { hashedPort: Number })
  write(path, 'rules: [{ role: server, use: tcp }]\n')
  await wire(server, 'tcp')
  await wire(client, 'tcp')
  await eventually('a listener on TCP', () => listener()?.reason === 'POLICY')
  t.match(await client.ask({ ask: 'connect' }), { transport: 'tcp' })
  write(path, 'default: fast\n')
  await eventually('a fast listener', () => listener()?.hashedPort !== undefined)
  await wire(client, 'shm')
})

t.test('a wrong file leaves the last good one in force', async t => {
  const path = newFile('rules: [{ role: client, use: tcp }]\n')
  const { client } = await startPair(t, { server: newFile('default: fast\n'), client: path })
  const [before] = readStatusOf(client.pid)
  for (const [wrong, count] of [
    ['rulez: []\n', 1],
    ['rules: [{ use: require, port: 0 }]\n', 2],
  ] as const) {
    write(path, wrong)
    await eventually('the news', async () => (await policiesOf(client)).length === count)
    t.match((await policiesOf(client)).at(-1), {
      error: 'ERR_FASTSOCKETS_POLICY',
      version: before?.policy?.version,
    })
    t.match(await client.ask({ ask: 'connect' }), { transport: 'tcp' })
    t.match(readStatusOf(client.pid)[0]?.policy, { state: 'stale', version: before?.policy?.version })
  }
  t.match(client.stderr, /version [\da-f]{12} stays in force: .*unknown key "rulez"/)
  write(path, 'default: fast\n')
  await wire(client, 'shm')
})

t.test('a program that has started with a wrong file becomes fast once it is mended', async t => {
  const path = newFile('rulez: []\n')
  const { server, client } = await startPair(t, { server: path, client: path })
  t.match(readStatusOf(client.pid)[0]?.policy, { state: 'invalid', file: path })
  t.match(readStatusOf(server.pid)[0]?.listeners, [{ reason: 'POLICY_INVALID' }])
  t.match(await client.ask({ ask: 'connect' }), { transport: 'tcp' })
  write(path, 'default: fast\n')
  await wire(client, 'shm')
})

t.test('what is required from now on', async t => {
  const [ofServer, ofClient] = [newFile('default: fast\n'), newFile('default: tcp\n')]
  const { server, client, port } = await startPair(t, { server: ofServer, client: ofClient })
  write(ofServer, 'rules: [{ role: server, use: require }]\n')
  await eventually('the news', async () => (await policiesOf(server)).length === 1)
  const stranger = spawnSync('bash', ['-c', `cat < /dev/tcp/127.0.0.1/${port}`], { encoding: 'utf8' })
  t.match(stranger.stderr, /reset by peer/, 'a program without Node is reset')
  t.match(await client.ask({ ask: 'wires' }), ['tcp'], 'the connection that exists stays')
  // It is counted after the reset.
  const refusedCount = async () => readStatusOf(server.pid)[0]?.listeners[0]?.refusedTcp || false
  t.equal(await eventually('the count', refusedCount), 1)
  const { refused } = await server.ask<{ refused: object[] }>({ ask: 'events' })
  t.match(refused, [
    {
      local: { address: '127.0.0.1', port: Number(port) },
      remote: { address: '127.0.0.1' },
      because: /rule 1/,
    },
  ])
  write(ofServer, 'rules: [{ role: server, use: tcp }]\n')
  await eventually('the news', async () => (await policiesOf(server)).length === 2)
  write(ofClient, 'rules: [{ role: client, use: require }]\n')
  const outcome = await eventually('a refusal', async () => {
    const found = await client.ask<Outcome>({ ask: 'connect' })
    return found.failed === 'ERR_FASTSOCKETS_REQUIRED' && found
  })
  t.equal(outcome.reason, 'NOT_RELINKED')
  t.match(outcome.message, `127.0.0.1:${port} (rule 1 of ${ofClient}, line 1)`)
})

t.test('explain --pid goes by the policy, variables and connections of that process', async t => {
  const file = newFile(`rules: [{ program: reload.js, use: tcp }]\n`)
  const { client, port } = await startPair(t, { server: newFile('default: fast\n'), client: file })
  const explain = (...args: string[]) =>
    spawnSync(process.execPath, [CLI, 'explain', ...args], { encoding: 'utf8' })
  const { stdout } = explain(`127.0.0.1:${port}`, '--pid', String(client.pid), '--json')
  t.match(JSON.parse(stdout), [
    {
      outcome: 'tcp',
      policy: { because: `rule 1 of ${file}, line 1` },
      connections: [{ transport: 'tcp', reason: 'POLICY', count: 1 }],
    },
  ])
  t.match(explain(`127.0.0.1:${port}`).stdout, /shm/, 'not by our own')
  write(file, 'rulez: []\n')
  await eventually('the news', async () => (await policiesOf(client)).length === 1)
  t.match(explain(`127.0.0.1:${port}`, '--pid', String(client.pid)), {
    status: 1,
    stderr: /has version|in version/,
  })
  t.match(explain(`127.0.0.1:${port}`, '--pid', String(process.ppid)), {
    status: 1,
    stderr: /no relinked process/,
  })
})

t.test('the watch keeps no program alive', async t => {
  const server = start(t, newFile('default: fast\n'), 'server')
  const { port } = await server.receive<{ port: number }>()
  const env = { ...plainEnvironment(), FASTSOCKETS_POLICY: newFile('default: fast\n') }
  const client = new Child(t, program('reason'), [String(port)], relinked({ env }))
  t.match(await client.receive(), { transport: String })
  t.match(await client.end(), { code: 0 })
})
