/** The policy decides which road is taken: unmodified programs, relinked, under a policy file. */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { readStatusOf } from '../../../fastsockets/status/read-status.ts'
import { Child, plainEnvironment } from '../../support/child.ts'
import { portWithFirstHashed } from '../../support/ports.ts'
import { program, relinked } from '../../support/relinked.ts'
import { skipHere } from '../../support/skip.ts'
import { eventually } from '../../support/until.ts'

const CLI = fileURLToPath(new URL('../../../fastsockets/cli/main.js', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'fastsockets-policy-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
// Another user reads it, too.
chmodSync(folder, 0o755)
let fileCount = 0

/** An environment in which `text` is the policy. */
function under(text: string): NodeJS.ProcessEnv {
  const path = join(folder, `${fileCount++}.yaml`)
  writeFileSync(path, text)
  return { ...plainEnvironment(), FASTSOCKETS_POLICY: path }
}

async function startServer(t: Test, env = plainEnvironment()): Promise<number> {
  const server = new Child(t, program('server'), ['echo'], relinked({ env }))
  return (await server.receive<{ port: number }>()).port
}

/** What became of a relinked client. */
async function outcome(
  t: Test,
  port: number,
  env = plainEnvironment(),
  host = '127.0.0.1',
): Promise<unknown> {
  const client = new Child(t, program('reason'), [String(port), host], relinked({ env }))
  return await client.receive()
}

t.test('without a policy it is fast', async t => {
  t.match(await outcome(t, await startServer(t)), { transport: 'shm' })
})

t.test('a client that is kept on TCP', async t => {
  const port = await startServer(t)
  const env = under(`rules:\n  - { role: client, port: ${port}, use: tcp }\n`)
  t.match(await outcome(t, port, env), {
    transport: 'tcp',
    reason: { code: 'POLICY', text: /rule 1 of .*yaml, line 2/ },
  })
  t.match(await outcome(t, port, under(`rules: [{ role: server, use: tcp }]`)), { transport: 'shm' })
  t.match(await outcome(t, port, under('rules: [{ program: reason.js, use: tcp }]')), {
    reason: { code: 'POLICY' },
  })
  t.match(await outcome(t, port, under('rules: [{ program: other.js, use: tcp }]')), { transport: 'shm' })
  t.match(await outcome(t, port, under('rules: [{ address: 127.0.0.0/8, use: tcp }]'), 'localhost'), {
    reason: { code: 'POLICY' },
  })
})

t.test('a server that is kept on TCP has no hashed port', async t => {
  const port = await startServer(t, under('rules: [{ role: server, use: tcp }]'))
  t.match(await outcome(t, port), { transport: 'tcp', reason: { code: 'NOT_RELINKED' } })
})

t.test('a client that must be fast fails rather than falls back, by name and by address', async t => {
  const server = new Child(t, program('server'), ['echo'])
  const { port } = await server.receive<{ port: number }>()
  const env = under('default: require\n')
  for (const host of ['127.0.0.1', 'localhost']) {
    t.match(await outcome(t, port, env, host), {
      failed: 'ERR_FASTSOCKETS_REQUIRED',
      reason: 'NOT_RELINKED',
    })
  }
  t.match(await outcome(t, await startServer(t), env, 'localhost'), { transport: 'shm' })
})

/** How the names of our variables begin. */
const OURS = 'FASTSOCKETS_'
/** Takes from the relinked side of a test what every fast way needs. */
const NO_DRIVER = { FASTSOCKETS_DRIVERS: 'verbs' }

t.test('a client that must be fast, where nothing can be', async t => {
  const port = await startServer(t)
  const env = { ...under('default: require\n'), ...NO_DRIVER }
  t.match(await outcome(t, port, env), { failed: 'ERR_FASTSOCKETS_REQUIRED', reason: 'POLICY' })
})

t.test('rules by address hold for a name, too, where nothing can be fast', async t => {
  const port = await startServer(t)
  // For Node it is a name; the system takes it for 127.0.0.1.
  const name = '127.1'
  const without = (text: string): NodeJS.ProcessEnv => ({ ...under(text), ...NO_DRIVER })
  for (const env of [
    without('rules: [{ address: 127.0.0.0/8, use: require }]'),
    without(`rules: [{ address: 127.0.0.0/8, use: require }, { port: ${port}, use: fast }]`),
  ]) {
    const failed = { failed: 'ERR_FASTSOCKETS_REQUIRED', reason: 'POLICY' }
    t.match(await outcome(t, port, env, name), failed)
    t.match(await outcome(t, port, env), failed)
  }
  for (const text of [
    'rules: [{ address: 10.0.0.0/8, use: require }]',
    'default: require\nrules: [{ address: 127.0.0.0/8, use: fast }]',
  ])
    t.match(await outcome(t, port, without(text), name), { transport: 'tcp', reason: { code: 'POLICY' } })
})

t.test('FASTSOCKETS_DISABLE goes over every policy, a wrong one too', async t => {
  const port = await startServer(t)
  for (const text of ['default: require\n', 'rule: [{ use: require }]\n']) {
    for (const value of ['1', 'yes', 'true']) {
      const env = { ...under(text), FASTSOCKETS_DISABLE: value }
      t.match(await outcome(t, port, env), { transport: 'tcp', reason: { code: 'DISABLED' } })
    }
    const env = { ...under(text), FASTSOCKETS_DISABLE: '1' }
    t.match(await outcome(t, await startServer(t, env)), { transport: 'tcp' }, 'a listener')
  }
  for (const value of ['', '0', 'false', 'FALSE']) {
    const env = { ...plainEnvironment(), FASTSOCKETS_DISABLE: value }
    t.match(await outcome(t, port, env), { transport: 'shm' }, `"${value}" is off`)
  }
})

t.test('a variable whose name is wrong is warned of once', async t => {
  const port = await startServer(t)
  const env = {
    ...plainEnvironment(),
    [`${OURS}DISABEL`]: '1',
    [`${OURS}WHATEVER`]: '1',
    [`${OURS}SERVICE_HOST`]: '10.0.0.1',
    [`${OURS}PORT_7400_TCP`]: 'tcp://10.0.0.1:7400',
    [`${OURS}NAMED_STORE_PATH`]: '/nowhere',
  }
  const client = new Child(t, program('reason'), [String(port)], relinked({ env }))
  t.match(await client.receive(), { transport: 'shm' })
  await client.end()
  const warned = client.stderr.match(/FASTSOCKETS_\w+ has no meaning.*/g)
  t.strictSame(warned?.sort(), [
    `${OURS}DISABEL has no meaning: did you mean FASTSOCKETS_DISABLE?`,
    `${OURS}WHATEVER has no meaning`,
  ])
})

t.test('rules see the file of a program, however it is started', async t => {
  const port = await startServer(t)
  const app = join(realpathSync(folder), 'app')
  mkdirSync(app)
  const main = join(app, 'index.js')
  writeFileSync(main, `import(${JSON.stringify(program('reason').href)})\n`)
  symlinkSync(main, join(app, 'link.js'))
  symlinkSync(app, join(folder, 'linked'))
  const env = under(`rules: [{ program: ${main}, use: tcp }]`)
  const started = [main, join(app, 'index'), app, join(app, 'link'), join(folder, 'linked')]
  for (const path of started) {
    const client = new Child(t, pathToFileURL(path), [String(port)], relinked({ env }))
    t.match(await client.receive(), { transport: 'tcp', reason: { code: 'POLICY' } }, path)
  }
  for (const path of started) {
    const args = [CLI, 'explain', `127.0.0.1:${port}`, '--program', path]
    const { stdout } = spawnSync(process.execPath, args, { env, encoding: 'utf8' })
    t.match(stdout, /policy {2}tcp: rule 1 of/, `explain --program ${path}`)
  }
})

t.test('a server that must be fast, where nothing can be, does not listen', async t => {
  const env = { ...under('default: require\n'), ...NO_DRIVER }
  const server = new Child(t, program('server'), ['echo'], relinked({ env }))
  t.match(await server.end(), { code: 1 })
  t.match(server.stderr, /ERR_FASTSOCKETS_REQUIRED/)
})

t.test('a policy that is wrong keeps everything on TCP, says so, and breaks nothing', async t => {
  const port = await startServer(t)
  const client = new Child(t, program('reason'), [String(port)], relinked({ env: under('rule: []\n') }))
  t.match(await client.receive(), { transport: 'tcp', reason: { code: 'POLICY_INVALID' } })
  await client.end()
  t.match(client.stderr, /everything stays on TCP: .*yaml:1: unknown key "rule"/)
  for (const text of ['default: &use fast\nrules: [{ use: *use }]\n', 'rules: [{ use: *nothing }]\n']) {
    t.match(await outcome(t, port, under(text)), {
      transport: 'tcp',
      reason: { code: 'POLICY_INVALID', text: /aliases/ },
    })
  }
})

t.test('a policy that is wrong and mentions require allows no connection', async t => {
  const port = await startServer(t)
  const wrong = 'rule: []\nrules: [{ port: 5000, use: require }]\n'
  const refusal = { failed: 'ERR_FASTSOCKETS_REQUIRED', reason: 'POLICY_INVALID' }
  t.match(await outcome(t, port, under(wrong)), refusal)
  t.match(await outcome(t, port, { ...under('rule: []\n'), FASTSOCKETS_USE: 'require' }), refusal)
  t.match(await outcome(t, port, { ...under(wrong), FASTSOCKETS_USE: 'fast' }), { transport: 'tcp' })
  t.match(await outcome(t, port, under('# use: require\nrule: []\n')), { transport: 'tcp' })
  const server = new Child(t, program('server'), ['echo'], relinked({ env: under(wrong) }))
  t.match(await server.end(), { code: 1 })
  t.match(server.stderr, /no connection is allowed: .*unknown key "rule"/)
  t.match(server.stderr, /ERR_FASTSOCKETS_REQUIRED/)
})

t.test('the environment goes over the file', async t => {
  const port = await startServer(t)
  const env = under('default: require\n')
  t.match(await outcome(t, port, { ...env, FASTSOCKETS_USE: 'tcp' }), {
    reason: { code: 'POLICY', text: /FASTSOCKETS_USE=tcp/ },
  })
  t.match(await outcome(t, port, { ...plainEnvironment(), FASTSOCKETS_DRIVERS: 'loopback' }), {
    reason: { code: 'POLICY', text: /does not allow shm/ },
  })
  t.match(await outcome(t, port, { ...plainEnvironment(), FASTSOCKETS_USE: 'maybe' }), {
    reason: { code: 'POLICY_INVALID' },
  })
  t.match(await outcome(t, port, { ...plainEnvironment(), FASTSOCKETS_DRIVERS: 'shm, loopback' }), {
    transport: 'shm',
  })
  for (const [name, value] of [
    ['FASTSOCKETS_DRIVERS', 'smh'],
    ['FASTSOCKETS_START', 'slow'],
    ['FASTSOCKETS_USERS', '1000,,1001'],
    ['FASTSOCKETS_USERS', '4294967296'],
  ] as const) {
    t.match(await outcome(t, port, { ...plainEnvironment(), [name]: value }), {
      reason: { code: 'POLICY_INVALID', text: new RegExp(name) },
    })
  }
})

t.test('another user is let in by both policies, and by no other', async t => {
  if (process.getuid?.() !== 0) return skipHere(t, 'another user (needs root to become one)')
  const NOBODY = 65534
  const env = under(`users: [0, ${NOBODY}]\n`)
  const server = new Child(t, program('server'), ['echo'], relinked({ env, uid: NOBODY, gid: NOBODY }))
  const { port } = await server.receive<{ port: number }>()
  t.match(await outcome(t, port, env), { transport: 'shm' })
  t.match(await outcome(t, port), { transport: 'tcp', reason: { code: 'OTHER_USER' } })
})

t.test('an allowed user does not serve the port of another user', async t => {
  if (process.getuid?.() !== 0) {
    t.comment('SKIPPED: another user who poses as a server (needs root to become one)')
    return
  }
  const NOBODY = 65534
  const env = under(`users: [0, ${NOBODY}]\n`)
  const port = await portWithFirstHashed()
  await new Child(t, program('server'), ['echo', '127.0.0.1', String(port)]).receive()
  const poser = new Child(t, program('poser'), [String(port)], { env, uid: NOBODY, gid: NOBODY })
  t.match(await poser.receive(), { isGreeting: true })
  t.match(await outcome(t, port, env), { transport: 'tcp', reason: { code: 'OTHER_USER' } })
  t.match(await poser.ask({}), { offered: 0 })
})

t.test(
  'an allowed user that listens on the port later is not asked to take over older connections',
  async t => {
    if (process.getuid?.() !== 0)
      return skipHere(t, 'another user who takes a port (needs root to become one)')
    const NOBODY = 65534
    const env = under(`users: [0, ${NOBODY}]\n`)
    const first = new Child(t, program('taken-port'), ['first'])
    const { port } = await first.receive<{ port: number }>()
    const toMove = { ...env, FASTSOCKETS_START: 'tcp', FASTSOCKETS_ABLATE: 'price=0' }
    const client = new Child(t, program('taken-port'), ['client', String(port)], relinked({ env: toMove }))
    await client.receive()
    await first.ask({})
    const options = { env, uid: NOBODY, gid: NOBODY }
    const second = new Child(t, program('taken-port'), ['second', String(port)], options)
    t.match(await second.receive(), { isGreeting: true })
    t.strictSame(await client.ask({}), { transport: 'tcp', reason: 'OTHER_USER' }, 'the first server answers')
    t.strictSame(await second.ask({}), { asked: 0 })
  },
)

t.test('an allowed user is not taken for the user that it claims to be', async t => {
  if (process.getuid?.() !== 0) return skipHere(t, 'another user who lies (needs root to become one)')
  const NOBODY = 65534
  const port = await startServer(t)
  const env = under(`users: [0, ${NOBODY}]\n`)
  const victim = new Child(t, program('listening-client'), [], relinked({ env }))
  const { port: victims } = await victim.receive<{ port: number }>()
  const lies = [String(victims), String(port)]
  const impostor = new Child(t, program('impostor'), lies, { env, uid: NOBODY, gid: NOBODY })
  const { state, port: impostors } = await impostor.receive<{ state: string; port: number }>()
  t.equal(state, 'open')
  victim.send({ port })
  t.strictSame(await victim.receive(), { transport: 'shm', answer: 'who is there?' })
  await victim.kill()

  // Nor if it was called.
  const caller = new Child(t, program('listening-client'), [], relinked({ env }))
  await caller.receive()
  caller.send({ port: impostors })
  t.match(await caller.receive(), { transport: 'tcp', answer: 'impostor' })
  caller.send({ port })
  t.strictSame(await caller.receive(), { transport: 'shm', answer: 'who is there?' })
})

t.test('fastsockets policy check', async t => {
  const check = (env: NodeJS.ProcessEnv, ...args: string[]) =>
    spawnSync(process.execPath, [CLI, 'policy', 'check', ...args], { env, encoding: 'utf8' })
  const good = under('users: [1000]\nrules: [{ use: tcp }]\n')
  t.match(check(good), {
    status: 0,
    stdout:
      /yaml: 1 rule; default: fast \(the default of .*yaml\); users: the own user and 1000; drivers: all\nFASTSOCKETS_POLICY=.* names the file\.\n$/,
  })
  const bad = under('rules:\n  - use: sometimes\n')
  t.match(check(bad), { status: 1, stderr: /yaml:2: rule 1: use must be equal to one of/ })
  t.match(check(good, String(bad.FASTSOCKETS_POLICY)), { status: 1 })
  t.match(check({ ...good, FASTSOCKETS_POLICY: '/nowhere' }), { status: 1, stderr: /ENOENT/ })
  const empty = { ...plainEnvironment(), XDG_CONFIG_HOME: folder }
  t.equal(check(empty).stdout, 'There is no policy file: every connection that can be accelerated is.\n')
  const narrowed = { ...empty, FASTSOCKETS_USERS: '7', FASTSOCKETS_DRIVERS: 'shm' }
  for (const [env, said] of [
    [
      { ...empty, FASTSOCKETS_USE: 'tcp' },
      [
        'no policy file: 0 rules; default: tcp (FASTSOCKETS_USE=tcp)',
        'FASTSOCKETS_USE=tcp holds in place of',
      ],
    ],
    [
      { ...good, FASTSOCKETS_USE: 'require' },
      ['1 rule, of which none holds; default: require (FASTSOCKETS_USE=require)'],
    ],
    [
      narrowed,
      [
        'the own user and 7; drivers: shm',
        'FASTSOCKETS_USERS=7 holds in',
        'FASTSOCKETS_DRIVERS=shm holds in',
      ],
    ],
    [{ ...empty, FASTSOCKETS_DISABLE: '1' }, ['default: fast', 'FASTSOCKETS_DISABLE=1 goes over all of it']],
  ] as const) {
    const { stdout } = check(env)
    for (const part of said) t.ok(stdout.includes(part), `${part}: ${stdout}`)
  }
  // It takes a second of processor time, and says the same.
  const { stdout } = spawnSync(process.execPath, [CLI, 'doctor'], { env: narrowed, encoding: 'utf8' })
  for (const line of check(narrowed).stdout.trim().split('\n'))
    t.ok(stdout.includes(line), `doctor, too: ${line}: ${stdout}`)
})

t.test(
  'fastsockets policy check: mistakes in order, names of users, and rules that never decide',
  async t => {
    const check = (text: string, ...args: string[]) =>
      spawnSync(process.execPath, [CLI, 'policy', 'check', ...args], { env: under(text), encoding: 'utf8' })
    const wrong = check(
      'rules:\n  - { prot: 80, use: tcp }\n  - { port: 99999, use: tcp }\nusers: [nosuchuser, 1.5]\ndefalt: tcp\n',
    )
    t.equal(wrong.status, 1)
    t.strictSame(
      wrong.stderr
        .trim()
        .split('\n')
        .map(line => line.replace(/^.*?yaml:/, '')),
      [
        '2: rule 1: unknown key "prot": did you mean port?',
        '3: rule 2: port must be within 1..65535, or a range such as 8000-8099',
        '4: users must be a user id or a user name',
        '4: nosuchuser is not in /etc/passwd: write the number of the user',
        '5: unknown key "defalt": did you mean default?',
      ],
    )
    t.match(check('users: [root, 7]\n'), { status: 0, stdout: /users: the own user and 0, 7;/ })
    for (const text of ['rules: [{ program: *.js, use: tcp }]\n', 'rules: [{ path: @name, use: tcp }]\n'])
      t.match(check(text), { status: 1, stderr: /quote a pattern that begins with \* or @/ })

    const shadowed = check(`rules:
  - { address: 10.0.0.0/8, port: 80-90, use: tcp }
  - { address: 10.1.2.3, port: 85, use: fast }
  - { address: 10.1.2.3, port: 91, use: fast }
  - { address: 11.0.0.1, port: 85, use: fast }
  - { program: /nowhere/app.js, use: tcp }
  - { program: '/srv/**', role: client, use: tcp }
  - { program: /srv/app.js, role: client, port: 1, use: fast }
  - { program: '/srv/*.js', role: server, use: fast }
  - { path: '/run/*', use: tcp }
  - { path: /run/app.sock, use: fast }
  - { use: fast }
  - { port: 5, use: tcp }
`)
    t.equal(shadowed.status, 0)
    t.strictSame(shadowed.stderr.match(/rule \d+ never decides: .*/g), [
      'rule 2 never decides: rule 1 matches all of it',
      'rule 5 never decides: there is no file /nowhere/app.js',
      'rule 7 never decides: rule 6 matches all of it',
      'rule 10 never decides: rule 9 matches all of it',
      'rule 12 never decides: rule 11 matches all of it',
    ])
  },
)

t.test('fastsockets policy check --against-running', async t => {
  const port = await startServer(t)
  const client = new Child(t, program('client'), [String(port)], relinked())
  await client.receive()
  const check = (text: string) => {
    const args = [CLI, 'policy', 'check', '--against-running']
    const { stdout } = spawnSync(process.execPath, args, { env: under(text), encoding: 'utf8' })
    return stdout.split('\n').filter(line => line.includes(`:${port}`))
  }
  t.strictSame(check('default: fast\n'), [])
  const changed = check(`rules: [{ role: client, port: ${port}, use: tcp }]\n`)
  t.equal(changed.length, 1)
  t.match(changed[0], new RegExp(`^${client.pid} .*client of 127.0.0.1:${port}: shm -> tcp: rule 1 of`))
  t.equal(check('drivers: [verbs]\n').filter(line => /shm -> tcp: drivers/.test(line)).length, 2, 'both ends')
  t.equal(check('default: tcp\n').filter(line => /listener .*fast -> tcp/.test(line)).length, 1)

  const plain = new Child(t, program('server'), ['hold'])
  const { port: plainPort } = await plain.receive<{ port: number }>()
  const overTcp = new Child(t, program('client'), [String(plainPort)], relinked())
  await overTcp.receive()
  await eventually('its row', () => readStatusOf(overTcp.pid)[0]?.sockets.length === 1)
  const args = [CLI, 'policy', 'check', '--against-running']
  const { stdout } = spawnSync(process.execPath, args, { env: under('default: require\n'), encoding: 'utf8' })
  t.match(
    stdout,
    new RegExp(`${overTcp.pid} .*client of 127.0.0.1:${plainPort}: tcp \\(NOT_RELINKED\\) -> fails`),
  )
})

t.test('fastsockets explain', async t => {
  const explain = (env: NodeJS.ProcessEnv, ...args: string[]) =>
    spawnSync(process.execPath, [CLI, 'explain', ...args], { env, encoding: 'utf8' })
  const port = await startServer(t)
  t.match(explain(plainEnvironment(), `127.0.0.1:${port}`), { status: 0, stdout: /^127.0.0.1:\d+ {2}shm\n/ })
  const env = under(`rules:\n  - { program: /srv/app.js, use: tcp }\n  - { port: 1, use: require }\n`)
  t.match(explain(env, `127.0.0.1:${port}`, '--program', '/srv/app.js'), {
    status: 1,
    stdout: /tcp\n {4}policy {2}tcp: rule 1 of .*, line 2\n {4}reason {2}POLICY/,
  })
  const failing = explain(env, '127.0.0.1:1', '--json')
  t.equal(failing.status, 1)
  t.match(JSON.parse(failing.stdout), [
    { address: '127.0.0.1', outcome: 'fails', policy: { use: 'require' }, reason: { code: 'NOT_LISTENING' } },
  ])
  t.match(explain(env, '192.0.2.1:80'), { stdout: /NO_RENDEZVOUS|REMOTE_HOST/ })
  const plain = new Child(t, program('server'), ['echo'])
  const { port: plainPort } = await plain.receive<{ port: number }>()
  const [relinkable] = JSON.parse(explain(plainEnvironment(), `127.0.0.1:${plainPort}`, '--json').stdout)
  t.match(relinkable, { reason: { code: 'NOT_RELINKED' } })
  t.notOk('foreign' in relinkable, 'Node, by its symbols')
  const light = new Child(
    t,
    program('server'),
    ['echo'],
    relinked({ env: { ...plainEnvironment(), FASTSOCKETS_START: 'tcp' } }),
  )
  const { port: lightPort } = await light.receive<{ port: number }>()
  const required = explain({ ...plainEnvironment(), FASTSOCKETS_USE: 'require' }, `127.0.0.1:${lightPort}`)
  t.match(
    required,
    { status: 0, stdout: / shm\n[\s\S]*require: FASTSOCKETS_USE=require/ },
    'it has loaded nothing yet',
  )
  t.match(explain(env, 'nonsense'), { status: 2 })
})

t.test('a policy that allows some drivers allows these', async t => {
  const own = async (drivers: string): Promise<{ port: number }> => {
    const env = { ...plainEnvironment(), FASTSOCKETS_DRIVERS: drivers }
    return await new Child(t, program('own-transport'), [], relinked({ env })).receive()
  }
  const here = await own('loopback')
  t.match(here, { transport: 'loopback' })
  t.match(await outcome(t, here.port), { transport: 'tcp', reason: { code: 'NOT_RELINKED' } })
  const others = await own('shm')
  t.match(others, { transport: 'shm' })
  t.match(await outcome(t, others.port), { transport: 'shm' })
  t.match(await own('verbs'), { transport: 'tcp', reason: { code: 'POLICY' } })
})

t.test('ZCopy within a host: only if both programs ask for it', async t => {
  const asked = under('zcopy: true\n')
  const threshold = { FASTSOCKETS_ZCOPY_THRESHOLD: '32768' }
  const cases: [server: NodeJS.ProcessEnv, client: NodeJS.ProcessEnv, zcopy: string][] = [
    [plainEnvironment(), plainEnvironment(), 'off'],
    [asked, plainEnvironment(), 'off'],
    [plainEnvironment(), asked, 'refused'],
    [asked, asked, 'possible'],
    [asked, { ...plainEnvironment(), ...threshold }, 'possible'],
    [asked, { ...asked, FASTSOCKETS_ZCOPY_THRESHOLD: 'off' }, 'off'],
  ]
  for (const [serverEnv, clientEnv, zcopy] of cases) {
    const port = await startServer(t, serverEnv)
    const client = new Child(t, program('busy'), [String(port)], relinked({ env: clientEnv }))
    await client.receive()
    const [status] = await eventually('its status', () => {
      const found = readStatusOf(client.pid)
      return (found[0]?.sockets.length ?? 0) > 0 && found
    })
    t.equal(status?.sockets[0]?.zcopy, zcopy)
    await client.kill()
  }
})
