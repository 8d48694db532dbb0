/** `fastsockets names`, as a person or a script uses it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { plainEnvironment } from '../../../support/child.ts'
import { MAIN, Named } from '../../../support/named.ts'
import { eventually } from '../../../support/until.ts'

class Run {
  readonly #child: ReturnType<typeof spawn>
  readonly #closed: Promise<unknown[]>
  stdout = ''
  stderr = ''

  constructor(t: Test, named: Named, args: readonly string[]) {
    const env = { ...plainEnvironment(), FASTSOCKETS_NAMES: named.address }
    this.#child = spawn(process.execPath, [MAIN, 'names', ...args], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child.stdout?.setEncoding('utf8').on('data', text => {
      this.stdout += text
    })
    this.#child.stderr?.setEncoding('utf8').on('data', text => {
      this.stderr += text
    })
    this.#closed = once(this.#child, 'close')
    t.teardown(() => this.#child.kill('SIGKILL'))
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  async end(signal?: NodeJS.Signals): Promise<this & { code: number }> {
    if (signal !== undefined) this.#child.kill(signal)
    const [code] = await this.#closed
    return Object.assign(this, { code: code as number })
  }
}

t.test('register, ls, get, leases, rm, with tables and with JSON', async t => {
  const named = await Named.start(t)
  const names = async (...args: string[]) => await new Run(t, named, args).end()
  const record = [
    '--endpoint',
    'e1',
    '--label',
    'room=12',
    '--driver',
    'shm=QUJD',
    '--host',
    'h',
    '--tag',
    '00000000000000ff',
  ]
  const once = await names('register', 'a/printer', ...record, '--once', '--ttl', '60000')
  t.equal(once.code, 0, once.stderr)
  t.match(once.stdout, /a\/printer is registered, revision 1/)
  t.match((await names('ls')).stdout, /│ a\/printer │ e1 /)
  const listed = JSON.parse((await names('ls', 'a/', '--json')).stdout)
  t.match(listed, [{ name: 'a/printer', record: { labels: { room: '12' }, tag: '00000000000000ff' } }])
  t.strictSame(JSON.parse((await names('--json', 'ls', 'b/')).stdout), [])
  const got = await names('get', 'a/printer')
  t.match(got.stdout, /label room │ 12/)
  t.match(got.stdout, /driver shm │ QUJD/)
  t.match(JSON.parse((await names('get', 'a/printer', '--json')).stdout), listed[0])
  t.match((await names('leases')).stdout, /60\.0 s/)
  t.match(JSON.parse((await names('leases', '--json')).stdout), [{ names: 1, ttlMs: 60_000 }])
  t.match((await names('rm', 'a/printer')).stdout, 'a/printer is removed')
  for (const args of [
    ['rm', 'a/printer'],
    ['get', 'a/printer'],
  ]) {
    const { code, stderr } = await names(...args)
    t.equal(code, 1)
    t.match(stderr, 'a/printer is not registered')
  }
})

t.test('register keeps a name until it is interrupted', async t => {
  const named = await Named.start(t)
  const holder = new Run(t, named, ['register', 'held', '--endpoint', 'e', '--ttl', '1000'])
  await eventually('it', () => holder.stdout.includes('held is registered'))
  const second = await new Run(t, named, ['register', 'held', '--endpoint', 'f']).end()
  t.equal(second.code, 1)
  t.match(second.stderr, 'Another owner holds the name')
  // Longer than the TTL: it is kept alive.
  await new Promise(resolve => setTimeout(resolve, 1500))
  t.strictSame(await named.names(), ['held'])
  t.equal((await holder.end('SIGINT')).code, 0)
  t.strictSame(await named.names(), [], 'and then given back')
})

t.test('over TCP the record says which user registers', async t => {
  const token = 'w'.repeat(43)
  const folder = t.testdir({ token })
  const [tokens, tokenFile] = [join(folder, 'tokens.yaml'), join(folder, 'token')]
  writeFileSync(tokens, JSON.stringify({ tokens: [{ name: 'w', token, prefixes: [''], access: 'write' }] }))
  for (const file of [tokens, tokenFile]) chmodSync(file, 0o600)
  const named = await Named.start(t, { args: ['--tcp-listen', '127.0.0.1:0', '--tcp-tokens', tokens] })
  const address = `http://127.0.0.1:${named.messages().find(({ port }) => port !== undefined)?.port}`
  const register = ['--address', address, '--token-file', tokenFile, 'register', '--endpoint', 'e', '--once']
  for (const [name, uid, ...option] of [
    ['own', process.geteuid?.()],
    ['said', 4711, '--uid', '4711'],
  ] as const) {
    const { code, stderr } = await new Run(t, named, [...register, name, ...option]).end()
    t.equal(code, 0, stderr)
    const { stdout } = await new Run(t, named, ['get', name, '--json']).end()
    t.equal(JSON.parse(stdout).record.uid, uid)
  }
})

t.test('register ends when the name is refused later on', async t => {
  const named = await Named.start(t, { args: ['--store-kind', 'memory'] })
  const holder = new Run(t, named, ['register', 'held', '--endpoint', 'e'])
  await eventually('it', () => holder.stdout.includes('held is registered'))
  // The next daemon does not know the name, and another owner is faster.
  holder.signal('SIGSTOP')
  await named.kill()
  await named.up()
  await named.register('held', await named.grant())
  const { code, stderr } = await holder.end('SIGCONT')
  t.equal(code, 1)
  t.match(stderr, 'Another owner holds the name')
})

t.test('what strangers have written does nothing to the terminal, and JSON says it all the same', async t => {
  const named = await Named.start(t)
  const label = '\x1b]0;title\x07 \x9b2J \u202e'
  await named.register('a', await named.grant(), { endpoint: 'e', labels: { x: label } })
  const table = await new Run(t, named, ['get', 'a']).end()
  t.match(table.stdout, '\\u001b]0;title\\u0007 \\u009b2J \\u202e')
  const json = await new Run(t, named, ['get', 'a', '--json']).end()
  const listing = await new Run(t, named, ['ls']).end()
  for (const { stdout } of [table, json, listing]) t.notMatch(stdout, /[^\P{Cc}\n]|\u202e/u)
  t.match(JSON.parse(json.stdout), { record: { labels: { x: label } } })
})

t.test('watch prints every change', async t => {
  const named = await Named.start(t)
  const lease = await named.grant()
  const table = new Run(t, named, ['watch', 'a/'])
  const json = new Run(t, named, ['watch', '--json'])
  await eventually('both', () => table.stderr.includes('watching') && json.stdout.includes('up'))
  await named.register('a/x', lease)
  await named.register('b', lease)
  await named.ask('DELETE', '/v1/names/a%2Fx')
  await eventually('all', () => json.stdout.split('\n').length === 5 && table.stdout.includes('delete'))
  t.equal(table.stdout, '1  put     a/x  e\n3  delete  a/x\n')
  const events = json.stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  t.match(events, [
    { type: 'up' },
    { type: 'put', name: 'a/x' },
    { type: 'put', name: 'b' },
    { type: 'delete' },
  ])
  t.equal((await table.end('SIGINT')).code, 0)
  t.equal((await json.end('SIGTERM')).code, 0)

  const listing = await new Run(t, named, ['ls', '--json', '--cursor']).end()
  t.equal(JSON.parse(listing.stdout).length, 1)
  await named.register('later', lease)
  const after = new Run(t, named, ['watch', '--after', listing.stderr.trim()])
  await eventually('the change', () => after.stdout === '4  put     later  e\n')
  t.equal((await after.end('SIGINT')).code, 0)
})

t.test('without a daemon, or not as it is used', async t => {
  const named = new Named(t)
  const { code, stderr } = await new Run(t, named, ['ls']).end()
  t.equal(code, 1)
  t.match(stderr, 'the name service is not available: ENOENT')
  for (const args of [
    ['get'],
    ['get', 'NO'],
    ['rm', 'NO'],
    ['rm', 'a', 'NO'],
    ['watch', '--after', 'x'],
    ['--address', 'ftp://x', 'ls'],
    ['--token-file', '/nowhere/token', 'ls'],
    ['--ca-file', '/nowhere/ca', 'ls'],
    ['register', 'a', '--endpoint', 'e', '--owner-key-file', '/nowhere/key'],
    ['register', 'a'],
    ['register', 'a', '--endpoint', 'e', '--label', 'x'],
    ['nothing'],
  ]) {
    t.equal((await new Run(t, named, args).end()).code, 2, args.join(' '))
  }
})
