/** Configuration: by file, environment and flags, the later wins; what is wrong is said, with where it came from. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv } from 'ajv'
import t from 'tap'
import { parse } from 'yaml'
import { loadSettings } from '../../../nameservice/daemon/settings.ts'
import { isPlainlyRight } from '../../../nameservice/daemon/settings-check.ts'
import { SETTINGS_SCHEMA } from '../../../nameservice/daemon/settings-schema.ts'
import { flagOf, LEAVES, variableOf } from '../../../nameservice/named.ts'
import { plainEnvironment } from '../../support/child.ts'
import { MAIN, Named, temporaryFolder } from '../../support/named.ts'
import { freePort } from '../../support/ports.ts'
import { secretCopy } from '../../support/secret-file.ts'
import { eventually } from '../../support/until.ts'

const CERTIFICATE = fileURLToPath(new URL('../../../../tests/fixtures/localhost-cert.pem', import.meta.url))
const KEY = secretCopy(new URL('../../../../tests/fixtures/localhost-key.pem', import.meta.url))

function run(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [MAIN, 'named', ...args], {
    env: { ...plainEnvironment(), ...env },
    encoding: 'utf8',
    // One that runs although it should not.
    timeout: 30_000,
  })
  return { status, stdout, stderr }
}

const printed = (args: readonly string[], env: NodeJS.ProcessEnv = {}) =>
  parse(run(['--print-config', ...args], env).stdout)

t.test('every setting has a flag, a variable, a default and a description', async t => {
  t.ok(LEAVES.length > 30)
  for (const leaf of LEAVES) {
    t.match(flagOf(leaf), /^--[a-z][a-z-]+$/)
    t.match(variableOf(leaf), /^FASTSOCKETS_NAMED_[A-Z_]+$/)
    t.ok(leaf.description.length > 0, leaf.path.join('.'))
  }
  const help = run(['--help']).stdout
  for (const leaf of LEAVES) t.match(help, flagOf(leaf))
})

t.test('defaults, a file, the environment and flags, in this order', async t => {
  const file = join(temporaryFolder(t), 'named.yaml')
  writeFileSync(file, 'socket: { path: /file }\nstore: { kind: memory, history: 100 }\nadmins: [1, 2]\n')
  const env = {
    FASTSOCKETS_NAMED_STORE_HISTORY: '200',
    FASTSOCKETS_NAMED_LIMITS_NAMES_PER_LEASE: '50',
    FASTSOCKETS_NAMED_LOG_LEVEL: 'warn',
    XDG_RUNTIME_DIR: '/xdg',
  }
  const settings = printed(['--config', file, '--log-level', 'error', '--limits-names', '7'], env)
  t.match(settings, {
    socket: { path: '/file', mode: '0666' },
    store: { kind: 'memory', history: 200, onDamage: 'quarantine' },
    admins: [1, 2],
    log: { level: 'error' },
    limits: { names: 7, bodyBytes: 65_536 },
  })
  t.match(printed([], { ...env, FASTSOCKETS_NAMED_CONFIG: file }), { socket: { path: '/file' } })
  t.match(printed([], env), { socket: { path: '/xdg/fastsockets/named.sock' } })
  t.match(printed([], { XDG_RUNTIME_DIR: '' }), { socket: { path: '/run/fastsockets/named.sock' } })
  t.match(printed([], { STATE_DIRECTORY: '/state' }), { store: { path: '/state/store' } })
  t.match(printed(['--admins', '5,6'], env), { admins: [5, 6] })
  t.match(printed(['--etcd-endpoints', 'http://a:1,https://b:2']), {
    etcd: { endpoints: ['http://a:1', 'https://b:2'] },
  })
})

t.test('what is printed is a configuration file that says the same', async t => {
  const file = join(temporaryFolder(t), 'named.yaml')
  const first = run([
    '--print-config',
    '--store-kind',
    'memory',
    '--admins',
    '3',
    '--tcp-listen',
    '[::1]:0',
  ]).stdout
  writeFileSync(file, first)
  t.equal(run(['--print-config', '--config', file]).stdout, first)
})

t.test('socket and store have a place of their own for the service, the user and root', async t => {
  const placeFor = async (env: NodeJS.ProcessEnv): Promise<string[]> => {
    const { socket, store } = await loadSettings(new Map(), undefined, env)
    return [socket.path, store.path]
  }
  t.strictSame(await placeFor({ XDG_RUNTIME_DIR: '/run/user/7', XDG_STATE_HOME: '/home/u/state' }), [
    '/run/user/7/fastsockets/named.sock',
    '/home/u/state/fastsockets/named/store',
  ])
  const [socket, store] = await placeFor({})
  t.equal(socket, '/run/fastsockets/named.sock')
  const below = process.getuid?.() === 0 ? '/var/lib' : join(homedir(), '.local/state')
  t.equal(store, `${below}/fastsockets/named/store`)
  t.equal((await placeFor({ STATE_DIRECTORY: '/var/lib/x' }))[1], '/var/lib/x/store')
})

t.test('JSON is a configuration file, too; an empty one says nothing', async t => {
  const file = join(temporaryFolder(t), 'named.json')
  writeFileSync(file, JSON.stringify({ log: { level: 'debug' } }))
  t.match(printed(['--config', file]), { log: { level: 'debug' } })
  writeFileSync(file, '')
  t.match(printed(['--config', file]), { log: { level: 'info' } })
})

t.test('what is plainly right is right, and every setting that is right is', async t => {
  const ajv = new Ajv({ strict: true, allowUnionTypes: true })
  const isRight = ajv.compile(SETTINGS_SCHEMA)
  const numbers = [-1, 0, 1, 1.5, 99, 1000, 1001, 86_400_000, 10_000_000, 10_000_001, 2 ** 53, Number.NaN]
  const texts = [
    '',
    '7',
    '0666',
    '0999',
    'memory',
    'info',
    'none',
    '/a',
    '/a b',
    'http://a',
    'x'.repeat(1001),
  ]
  const lists = [[], [1], [-1], ['a'], ['https://a'], [1, 'a'], [[]], Array(100).fill(5), Array(101).fill(5)]
  const values = [...numbers, ...texts, ...lists, null, true, {}, { a: 1 }]
  const counts = { right: 0, wrong: 0 }
  for (const { path } of LEAVES) {
    for (const value of values) {
      const tree = path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value)
      const wanted = isRight(tree)
      if (isPlainlyRight(SETTINGS_SCHEMA, tree) !== wanted)
        t.fail(`${path.join('.')}: ${JSON.stringify(value)}`)
      counts[wanted ? 'right' : 'wrong'] += 1
    }
  }
  t.ok(counts.right > 100 && counts.wrong > 1000, JSON.stringify(counts))
  for (const tree of [null, [], 'x', { socket: [] }, { socket: { paths: '' } }, { toString: {} }])
    t.equal(isPlainlyRight(SETTINGS_SCHEMA, tree), false)
})

t.test('what is wrong is said, with where it came from', async t => {
  const file = join(temporaryFolder(t), 'named.yaml')
  const flag = (name: string, value: string) => new Map([[name, value]])
  const none = new Map<string, string>()
  const wrong: [complaint: RegExp, flags: Map<string, string>, env?: NodeJS.ProcessEnv, content?: string][] =
    [
      [/the command line: limits.names must be integer/, flag('limits.names', 'x')],
      [/the command line: limits.names must be >= 1/, flag('limits.names', '0')],
      [/the command line: store.kind must be one of embedded, memory, etcd/, flag('store.kind', 'redis')],
      [/the command line: socket.mode must match/, flag('socket.mode', '999')],
      [/the command line: admins.1 must be integer/, flag('admins', '1,root')],
      [
        /FASTSOCKETS_NAMED_LOG_LEVEL: log.level must be one of/,
        none,
        { FASTSOCKETS_NAMED_LOG_LEVEL: 'loud' },
      ],
      [/the configuration file: has the unknown property "sockets"/, none, {}, 'sockets: {}'],
      [/the configuration file: store has the unknown property "file"/, none, {}, 'store: { file: x }'],
      [/the configuration file: limits.names must be integer/, none, {}, 'limits: { names: "7" }'],
      [/a file is not YAML/, none, {}, '{ a: ['],
      [/the configuration file: must be object/, none, {}, '- 1'],
      [/a file has an alias/, none, {}, 'admins: &a [1]\nlog: *a'],
      [/etcd.endpoints: there must be one/, flag('store.kind', 'etcd')],
      [/etcd.endpoints: each must be a URL/, flag('etcd.endpoints', 'http://a:1,http://')],
      [/etcd.certificate and etcd.key belong together/, flag('etcd.certificate', 'x')],
      [/etcd.user and etcd.passwordFile belong together/, flag('etcd.user', 'x')],
      [/tcp.listen: must be ADDRESS:PORT/, flag('tcp.listen', '7000')],
      [/tcp.certificate and tcp.key belong together/, flag('tcp.certificate', 'x')],
      [
        /leaseTtlMinMs is above/,
        flag('limits.leaseTtlMaxMs', '1000'),
        { FASTSOCKETS_NAMED_LIMITS_LEASE_TTL_MIN_MS: '2000' },
      ],
      [/namesPerLease is above half of store.history/, flag('store.history', '9999')],
    ]
  for (const [complaint, flags, env = {}, content] of wrong) {
    if (content !== undefined) writeFileSync(file, content)
    await t.rejects(
      loadSettings(flags, content === undefined ? undefined : file, env),
      { message: complaint } as never,
      `${complaint}`,
    )
  }
  await t.rejects(loadSettings(none, '/nowhere/named.yaml', {}), {
    message: /cannot be read: ENOENT/,
  } as never)
})

t.test('with settings that are wrong the daemon does not start', async t => {
  for (const args of [['--limits-names', 'x'], ['--no-such-flag']]) {
    const { status, stderr } = run(args)
    t.equal(status, 2)
    t.match(stderr, /limits.names must be integer|unknown option/)
  }
})

t.test('files that the settings name, and that cannot be used, are settings that are wrong', async t => {
  const folder = temporaryFolder(t)
  const socket = ['--socket-path', join(folder, 's')]
  const etcd = ['--store-kind', 'etcd', '--etcd-endpoints', 'http://127.0.0.1:1', ...socket]
  const tcp = ['--store-kind', 'memory', '--tcp-listen', '127.0.0.1:0', ...socket]
  const nowhere = join(folder, 'nowhere')
  for (const [complaint, args] of [
    ['etcd.ca: ENOENT', [...etcd, '--etcd-ca', nowhere]],
    ['etcd.key: ENOENT', [...etcd, '--etcd-certificate', CERTIFICATE, '--etcd-key', nowhere]],
    ['etcd.passwordFile: ENOENT', [...etcd, '--etcd-user', 'u', '--etcd-password-file', nowhere]],
    ['etcd.ca, etcd.certificate or etcd.key: ERR_', [...etcd, '--etcd-certificate', KEY, '--etcd-key', KEY]],
    ['tcp.certificate or tcp.key: ENOENT', [...tcp, '--tcp-certificate', CERTIFICATE, '--tcp-key', nowhere]],
    ['tcp.certificate or tcp.key: ERR_', [...tcp, '--tcp-certificate', KEY, '--tcp-key', KEY]],
  ] as const) {
    const { status, stderr } = run(args)
    t.equal(status, 2, complaint)
    t.match(stderr, complaint)
  }
})

t.test('where it cannot listen, it does not start, and says where', async t => {
  const folder = temporaryFolder(t)
  const memory = ['--store-kind', 'memory']
  const nowhere = run([...memory, '--socket-path', 'none'])
  t.equal(nowhere.status, 2)
  t.match(nowhere.stderr, 'there is nothing to listen on')
  writeFileSync(join(folder, 'file'), '')
  const unfit = run([...memory, '--socket-path', join(folder, 'file', 's')])
  t.equal(unfit.status, 1)
  t.match(unfit.stderr, /the folder of the socket cannot be made: E\w+/)
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const { port } = other.address() as AddressInfo
  const taken = run([...memory, '--socket-path', 'none', '--tcp-listen', `127.0.0.1:${port}`])
  t.equal(taken.status, 1)
  t.match(taken.stderr, 'tcp.listen: cannot listen there: EADDRINUSE')
  const second = [...memory, '--socket-path', join(folder, 's'), '--tcp-listen', `127.0.0.1:${port}`]
  t.equal(run(second).status, 1, 'nor does half of it, where the first place is free')
  t.notOk(existsSync(join(folder, 's')))
})

t.test('a health check says whether a daemon is ready', async t => {
  t.equal(run(['--health-check', '--socket-path', join(temporaryFolder(t), 's')]).status, 1)
})

t.test('a daemon that is only on TCP is asked there, with TLS and without a token', async t => {
  const tokens = join(temporaryFolder(t), 'tokens.yaml')
  const token = { name: 'x', token: 'some-token-0123456789', prefixes: [''], access: 'read' }
  writeFileSync(tokens, JSON.stringify({ tokens: [token] }), { mode: 0o600 })
  const tls = ['--tcp-certificate', CERTIFICATE, '--tcp-key', KEY]
  for (const [address, flags] of [
    ['127.0.0.1', []],
    ['127.0.0.1', ['--tcp-tokens', tokens]],
    ['0.0.0.0', [...tls, '--tcp-tokens', tokens]],
  ] as const) {
    const args = ['--socket-path', 'none', '--tcp-listen', `${address}:${await freePort()}`, ...flags]
    const what = args.join(' ')
    t.equal(run(['--health-check', ...args]).status, 1, `no daemon yet: ${what}`)
    const named = new Named(t, { args })
    void named.spawn()
    await eventually('the daemon', () => named.messages().some(({ msg }) => msg === 'ready'))
    for (const health of ['ready', 'live']) {
      t.strictSame(
        run(['--health-check', health, ...args]),
        { status: 0, stdout: '', stderr: '' },
        `${health}: ${what}`,
      )
    }
    await named.end('SIGTERM')
    t.match(
      run(['--health-check', ...args]),
      { status: 1, stderr: /no daemon answers there: ECONNREFUSED/ },
      what,
    )
  }
})

t.test('where nothing says where the daemon listens, a health check says so', async t => {
  const nowhere = run(['--health-check', '--socket-path', 'none'])
  t.match(nowhere, { status: 2, stderr: /socket.path is none, and tcp.listen is empty/ })
  const anywhere = run(['--health-check', '--socket-path', 'none', '--tcp-listen', '127.0.0.1:0'])
  t.match(anywhere, { status: 2, stderr: /tcp.listen has port 0/ })
})
