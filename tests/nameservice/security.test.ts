/** Permissions: users over the unix socket, tokens over TCP, and what never leaves the daemon. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { request as tlsRequest } from 'node:https'
import { connect } from 'node:net'
import { constants, release } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { NameClient } from '../../nameservice/index.ts'
import { loadLibc } from '../../nic/posix/libc.ts'
import { sendMessage } from '../../nic/posix/unix-socket.ts'
import { Child, plainEnvironment } from '../support/child.ts'
import { askHttp, type HttpReply, type Loose, Named, temporaryFolder } from '../support/named.ts'
import { secretCopy } from '../support/secret-file.ts'
import { skipHere } from '../support/skip.ts'
import { eventually } from '../support/until.ts'

const CERTIFICATE = fileURLToPath(new URL('../../../tests/fixtures/localhost-cert.pem', import.meta.url))
const KEY = secretCopy(new URL('../../../tests/fixtures/localhost-key.pem', import.meta.url))
const ASK_CHILD = new URL('./ask-child.js', import.meta.url)
const WRITER = 'writer-token-0123456789'
const READER = 'reader-token-0123456789'
const notRoot = process.getuid?.() === 0 ? false : 'it takes root to become another user'

class OtherUser {
  readonly #child: Child

  static async start(t: Test, named: Named, uid: number): Promise<OtherUser> {
    chmodSync(named.folder, 0o755)
    const child = new Child(t, ASK_CHILD, [named.socketPath], { uid, gid: uid } as never)
    await child.receive()
    return new OtherUser(child)
  }

  private constructor(child: Child) {
    this.#child = child
  }

  ask(method: string, path: string, body?: unknown): Promise<{ status: number; json: Loose }> {
    return this.#child.ask({ method, path, body })
  }

  async grant(): Promise<string> {
    return String((await this.ask('POST', '/v1/leases', { ttlMs: 600_000 })).json.id)
  }

  register(name: string, lease: string, record: object = { endpoint: 'e' }, more: object = {}) {
    return this.ask('PUT', `/v1/names/${name}`, { lease, record, ...more })
  }
}

t.test('a user may change only its own names; root may change all', { skip: notRoot }, async t => {
  const named = await Named.start(t)
  const [alice, bob] = [await OtherUser.start(t, named, 12_001), await OtherUser.start(t, named, 12_002)]
  const [ofAlice, ofBob] = [await alice.grant(), await bob.grant()]
  const { json } = await alice.register('a', ofAlice)
  t.match(json, { owner: 'uid:12001', record: { uid: 12_001 } }, 'the kernel says who it is')
  t.equal(
    (await alice.register('b', ofAlice, { endpoint: 'e', uid: 12_002 })).status,
    403,
    'nobody lies about it',
  )
  t.equal((await bob.ask('GET', '/v1/names/a')).status, 200, 'every user may ask')

  const forbidden: [what: string, ask: () => Promise<{ status: number; json: Loose }>][] = [
    ['remove', () => bob.ask('DELETE', '/v1/names/a')],
    ['revoke', () => bob.ask('DELETE', `/v1/leases/${ofAlice}`)],
    ['keep alive', () => bob.ask('POST', `/v1/leases/${ofAlice}/keepalive`)],
    ['look at the lease', () => bob.ask('GET', `/v1/leases/${ofAlice}`)],
    ['register under the lease', () => bob.register('c', ofAlice)],
  ]
  for (const [what, ask] of forbidden) {
    const { status, json } = await ask()
    t.equal(status, 403, what)
    t.match(json, { type: 'urn:fastsockets:problem:forbidden' }, what)
  }
  t.equal((await bob.register('a', ofBob)).status, 409, 'for another user it is a conflict')
  t.equal((await bob.register('a', ofBob, undefined, { takeover: true })).status, 409)
  t.equal((await bob.ask('GET', '/v1/leases')).json.leases?.length, 1, 'one sees only its own leases')

  t.equal((await named.ask('GET', '/v1/leases')).json.leases?.length, 2, 'root sees all')
  t.equal((await named.register('a', ofAlice, { endpoint: 'r', uid: 12_001 })).status, 200)
  t.equal((await named.ask('DELETE', '/v1/names/a')).status, 200)
  t.equal((await named.ask('DELETE', `/v1/leases/${ofBob}`)).status, 204)
})

t.test('takeover needs the same user and the same owner key', { skip: notRoot }, async t => {
  const named = await Named.start(t)
  const [alice, bob] = [await OtherUser.start(t, named, 12_001), await OtherUser.start(t, named, 12_002)]
  const [first, second, ofBob] = [await alice.grant(), await alice.grant(), await bob.grant()]
  await alice.register('a', first, undefined, { ownerKey: 'k1' })
  const takeover = true
  t.equal((await alice.register('a', second, undefined, { takeover })).status, 409, 'no key')
  t.equal(
    (await alice.register('a', second, undefined, { takeover, ownerKey: 'k2' })).status,
    409,
    'another key',
  )
  t.equal(
    (await alice.register('a', second, undefined, { ownerKey: 'k1' })).status,
    409,
    'it must be asked for',
  )
  t.equal(
    (await bob.register('a', ofBob, undefined, { takeover, ownerKey: 'k1' })).status,
    409,
    'another user',
  )
  t.equal((await alice.register('a', second, undefined, { takeover, ownerKey: 'k1' })).status, 200)
  await alice.register('b', first)
  t.equal(
    (await alice.register('b', second, undefined, { takeover })).status,
    409,
    'without a key there is no key',
  )
})

t.test('a configured user may do what root may', { skip: notRoot }, async t => {
  const named = await Named.start(t, { args: ['--admins', '12001,12003'] })
  const [admin, bob] = [await OtherUser.start(t, named, 12_001), await OtherUser.start(t, named, 12_002)]
  await bob.register('a', await bob.grant())
  t.equal((await admin.ask('DELETE', '/v1/names/a')).status, 200)
})

t.test('without peer credentials nothing can be changed, and it is said why', async t => {
  // As on a machine for which koffi has no binary.
  const folder = temporaryFolder(t)
  writeFileSync(
    join(folder, 'no-koffi.cjs'),
    "const { Module } = require('node:module'); const load = Module._load; Module._load = (name, ...rest) => { if (name === 'koffi') throw new Error('no koffi'); return load(name, ...rest) }",
  )
  const named = await Named.start(t, { execArgv: ['--require', join(folder, 'no-koffi.cjs')] })
  const refused = await named.ask('POST', '/v1/leases')
  t.equal(refused.status, 403)
  t.match(refused.json, { type: 'urn:fastsockets:problem:no-credentials', detail: /koffi/ })
  t.equal((await named.ask('GET', '/v1/names')).status, 200)
  t.ok(named.messages().some(({ level, reason }) => level === 'error' && /koffi/.test(String(reason))))
})

t.test('its socket takes no descriptors: closing one may wait for its sender', async t => {
  const { libc, reason } = loadLibc()
  if (libc === undefined) return skipHere(t, `${reason}`)
  const named = await Named.start(t)
  const caller = connect(named.socketPath)
  await once(caller, 'connect')
  t.teardown(() => caller.destroy())
  const { fd } = (caller as unknown as { _handle: { fd: number } })._handle
  try {
    sendMessage(libc, fd, Buffer.from('GET '), [fd])
    const [major = 0, minor = 0] = release().split('.').map(Number)
    t.ok(major < 6 || (major === 6 && minor < 16), `Linux ${release()} can refuse descriptors`)
    t.comment(`SKIPPED: Linux ${release()} cannot refuse descriptors (6.16 can)`)
  } catch (error) {
    t.match(error, { code: 'ERR_NIC_SYSTEM', errno: constants.errno.EPERM })
  }
})

t.test(
  'in a user namespace an unmapped user changes nothing, not even names of another unmapped user',
  async t => {
    const url = new URL('../../nameservice/daemon/principal.js', import.meta.url)
    const script = `const { unixPrincipal } = await import(${JSON.stringify(url.href)})
    for (const uid of [0, 65534]) {
      const { isAdmin, readOnlyReason } = unixPrincipal({ pid: 1, uid }, new Set([65534]), undefined)
      console.log(uid, isAdmin, readOnlyReason?.code)
    }`
    const node = [process.execPath, '--input-type=module', '-e', script]
    const { status, stdout } = spawnSync('unshare', ['--user', '--map-user=0', ...node], {
      encoding: 'utf8',
      env: plainEnvironment(),
    })
    if (status !== 0) return skipHere(t, 'this machine makes no user namespace by unshare(1)')
    t.equal(stdout, '0 true undefined\n65534 false no-credentials\n')
  },
)

t.test('it does not listen beyond loopback without TLS and tokens', async t => {
  const tokens = tokenFile(t, [{ name: 'x', token: WRITER, prefixes: [''], access: 'write' }])
  const empty = tokenFile(t, [])
  const tls = ['--tcp-certificate', CERTIFICATE, '--tcp-key', KEY]
  const unsafe: [what: string, args: string[]][] = [
    ['neither', []],
    ['no tokens', tls],
    ['no TLS', ['--tcp-tokens', tokens]],
    ['a token file without tokens', [...tls, '--tcp-tokens', empty]],
  ]
  for (const [what, args] of unsafe) {
    for (const address of ['0.0.0.0:0', '[::]:0', '10.1.2.3:0', 'example.org:0']) {
      const named = new Named(t, { args: ['--tcp-listen', address, ...args] })
      t.strictSame(await named.spawn(), { code: 2, signal: null }, `${what}: ${address}`)
      t.match(named.stderr, /beyond loopback only with/, what)
      if (what !== 'neither') break
    }
  }
  const named = await Named.start(t, { args: ['--tcp-listen', '0.0.0.0:0', ...tls, '--tcp-tokens', tokens] })
  t.equal((await askTls(portOf(named), 'GET', '/v1/names', WRITER)).status, 200)
  t.equal((await askTls(portOf(named), 'GET', '/v1/names')).status, 401)
})

t.test('over TCP on loopback without tokens names may be asked for, not changed', async t => {
  const named = await Named.start(t, { args: ['--tcp-listen', '127.0.0.1:0'] })
  await named.register('a', await named.grant())
  const ask = (method: string, path: string) =>
    askHttp({ host: '127.0.0.1', port: portOf(named), method, path, headers: {} })
  t.equal((await ask('GET', '/v1/names/a')).status, 200)
  for (const [method, path] of [
    ['POST', '/v1/leases'],
    ['DELETE', '/v1/names/a'],
  ] as const) {
    const { status, headers, json } = await ask(method, path)
    t.equal(status, 401)
    t.match(headers['www-authenticate'], 'Bearer')
    t.match(json, { type: 'urn:fastsockets:problem:unauthenticated' })
  }
})

t.test('a token reaches its prefixes, to read or to write, and nothing else', async t => {
  const tokens = tokenFile(t, [
    { name: 'writer', token: WRITER, prefixes: ['team/', 'inet:tcp:10.'], access: 'write' },
    { name: 'reader', token: READER, prefixes: ['team/a'], access: 'read' },
  ])
  const named = await Named.start(t, { args: ['--tcp-listen', '127.0.0.1:0', '--tcp-tokens', tokens] })
  const ask = (
    token: string | undefined,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<HttpReply> => {
    const payload = body === undefined ? undefined : JSON.stringify(body)
    const headers = {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(payload === undefined ? {} : { 'content-type': 'application/json' }),
    }
    return askHttp({ host: '127.0.0.1', port: portOf(named), method, path, headers, payload })
  }
  const { json } = await ask(WRITER, 'POST', '/v1/leases', { ttlMs: 60_000 })
  t.match(json, { owner: 'token:writer' })
  const lease = String(json.id)
  const record = { endpoint: 'e', uid: 7 }
  t.equal((await ask(WRITER, 'PUT', '/v1/names/team%2Fa1', { lease, record })).status, 200)
  t.equal((await ask(WRITER, 'PUT', '/v1/names/inet:tcp:10.0.0.7:80', { lease, record })).status, 200)
  t.equal(
    (await ask(WRITER, 'PUT', '/v1/names/team%2Fx', { lease, record: { endpoint: 'e' } })).status,
    400,
    'the user is unknown',
  )
  const answers: [status: number, token: string | undefined, method: string, path: string, body?: unknown][] =
    [
      [403, WRITER, 'PUT', '/v1/names/other', { lease, record }],
      [403, WRITER, 'GET', '/v1/names/other'],
      [403, WRITER, 'GET', '/v1/names?prefix=te'],
      [403, WRITER, 'GET', '/v1/watch'],
      [403, WRITER, 'GET', '/v1/watch?name=other'],
      [200, WRITER, 'GET', '/v1/names?prefix=team/'],
      [200, READER, 'GET', '/v1/names/team%2Fa1'],
      [403, READER, 'GET', '/v1/names/team%2Fb'],
      [403, READER, 'POST', '/v1/leases', {}],
      [403, READER, 'DELETE', '/v1/names/team%2Fa1'],
      [403, READER, 'PUT', '/v1/names/team%2Fa1', { lease, record }],
      [401, undefined, 'GET', '/v1/names/team%2Fa1'],
      [401, `${READER}x`, 'GET', '/v1/names/team%2Fa1'],
      [401, READER.slice(1), 'GET', '/v1/names/team%2Fa1'],
      [401, undefined, 'GET', '/metrics'],
      [200, READER, 'GET', '/metrics'],
      [200, undefined, 'GET', '/healthz'],
      [200, undefined, 'GET', '/readyz'],
      [200, undefined, 'GET', '/v1/openapi.json'],
    ]
  for (const [status, token, method, path, body] of answers) {
    t.equal((await ask(token, method, path, body)).status, status, `${token} ${method} ${path}`)
  }
  // What belongs to a token belongs to no user.
  if (!notRoot) {
    const alice = await OtherUser.start(t, named, 12_001)
    t.equal((await alice.ask('DELETE', '/v1/names/team%2Fa1')).status, 403)
  }
})

t.test('tokens and certificates are read anew on SIGHUP; what is wrong changes nothing', async t => {
  const tokens = tokenFile(t, [{ name: 'old', token: WRITER, prefixes: [''], access: 'write' }])
  const args = [
    '--tcp-listen',
    '127.0.0.1:0',
    '--tcp-tokens',
    tokens,
    '--tcp-certificate',
    CERTIFICATE,
    '--tcp-key',
    KEY,
  ]
  const named = await Named.start(t, { args })
  const statusOf = async (token: string) => (await askTls(portOf(named), 'GET', '/v1/names', token)).status
  const client = new NameClient({
    address: `https://localhost:${portOf(named)}`,
    token: WRITER,
    ca: readFileSync(CERTIFICATE, 'utf8'),
  })
  t.teardown(() => client.close())
  const outcomes: string[] = []
  const watching = client.watch$().subscribe({
    next: ({ type }) => outcomes.push(type),
    error: error => outcomes.push(error.code),
  })
  t.teardown(() => watching.unsubscribe())
  await eventually('the watch', () => outcomes.includes('up'))
  t.equal(await statusOf(WRITER), 200)
  writeFileSync(tokens, 'tokens: [{ name: x }]')
  named.signal('SIGHUP')
  await eventually('the complaint', () => named.log.includes('stay as they were'))
  t.equal(await statusOf(WRITER), 200)
  writeTokens(tokens, [{ name: 'new', token: READER, prefixes: [''], access: 'read' }])
  named.signal('SIGHUP')
  await eventually('the news', async () => (await statusOf(READER)) === 200)
  t.equal(await statusOf(WRITER), 401)
  await eventually('the end of the watch of a token that is none any more', () =>
    outcomes.includes('ERR_NAMES_REFUSED'),
  )
})

t.test('a registration whose token has ended is refused, and its program hears of it', async t => {
  const tokens = tokenFile(t, [{ name: 'old', token: WRITER, prefixes: [''], access: 'write' }])
  const named = await Named.start(t, { args: ['--tcp-listen', '127.0.0.1:0', '--tcp-tokens', tokens] })
  const client = named.client({ address: `http://127.0.0.1:${portOf(named)}`, token: WRITER, ttlMs: 1500 })
  const heard: string[] = []
  const registration = client.register(
    { name: 'mine', endpoint: 'e', uid: 7 },
    { onState: (state, problem) => heard.push(`${state} ${problem?.status ?? ''}`) },
  )
  await registration.registered
  writeTokens(tokens, [{ name: 'new', token: READER, prefixes: [''], access: 'read' }])
  named.signal('SIGHUP')
  await eventually('the refusal', () => registration.state === 'refused')
  t.strictSame(heard, ['registered ', 'pending ', 'refused 401'])
  await eventually('the end of the name', async () => (await named.lookUp('mine')).status === 404)
})

t.test('a token that is missing from the file for a moment costs no owner a name', async t => {
  const own = { name: 'own', token: WRITER, prefixes: [''], access: 'write' }
  const other = { name: 'other', token: READER, prefixes: [''], access: 'read' }
  const tokens = tokenFile(t, [own])
  const named = await Named.start(t, { args: ['--tcp-listen', '127.0.0.1:0', '--tcp-tokens', tokens] })
  const client = named.client({ address: `http://127.0.0.1:${portOf(named)}`, token: WRITER, ttlMs: 6000 })
  const states: string[] = []
  const registration = client.register(
    { name: 'mine', endpoint: 'e', uid: 7 },
    { onState: state => states.push(state) },
  )
  const { revision } = await registration.registered
  const refusals = async (): Promise<number> =>
    Number(/"unauthenticated"\} (\d+)$/m.exec((await named.ask('GET', '/metrics')).text)?.[1] ?? 0)
  writeTokens(tokens, [other])
  named.signal('SIGHUP')
  await eventually('refused keep-alives', async () => (await refusals()) > 1)
  writeTokens(tokens, [own])
  named.signal('SIGHUP')
  await delay(4000)
  t.strictSame(states, ['registered'])
  t.match((await named.lookUp('mine')).json, { revision })
})

t.test('a token that ends while a request comes in is none any more', async t => {
  const tokens = tokenFile(t, [{ name: 'old', token: WRITER, prefixes: [''], access: 'write' }])
  const named = await Named.start(t, { args: ['--tcp-listen', '127.0.0.1:0', '--tcp-tokens', tokens] })
  const call = request({
    host: '127.0.0.1',
    port: portOf(named),
    method: 'POST',
    path: '/v1/watch',
    headers: {
      authorization: `Bearer ${WRITER}`,
      'content-type': 'application/json',
      'content-length': '2',
      expect: '100-continue',
    },
  })
  t.teardown(() => call.destroy())
  call.flushHeaders()
  await once(call, 'continue')
  writeTokens(tokens, [{ name: 'new', token: READER, prefixes: [''], access: 'read' }])
  named.signal('SIGHUP')
  await eventually('the news', () => named.log.includes('read anew'))
  call.end('{}')
  const [response] = (await once(call, 'response')) as [IncomingMessage]
  t.equal(response.statusCode, 401)
})

t.test('a token file must be kept from others, and be right', async t => {
  const good = [{ name: 'x', token: WRITER, prefixes: [''], access: 'write' }]
  const wrong: [what: string, content: unknown, mode?: number][] = [
    ['every user may read it', good, 0o644],
    ['others may write it', good, 0o620],
    ['a short token', [{ ...good[0], token: 'short' }]],
    ['no prefixes', [{ ...good[0], prefixes: [] }]],
    ['a strange access', [{ ...good[0], access: 'all' }]],
    ['a strange member', [{ ...good[0], x: 1 }]],
    ['the same name twice', [good[0], good[0]]],
    ['token and digest', [{ ...good[0], sha256: '0'.repeat(64) }]],
  ]
  for (const [what, content, mode] of wrong) {
    const tokens = tokenFile(t, content, mode)
    const named = new Named(t, { args: ['--tcp-listen', '127.0.0.1:0', '--tcp-tokens', tokens] })
    t.strictSame(await named.spawn(), { code: 2, signal: null }, what)
    t.notMatch(named.stderr + named.log, WRITER, what)
    t.notMatch(named.stderr + named.log, tokens, what)
  }
})

t.test('no path of the store, token or secret is in an answer or a log', async t => {
  const tokens = tokenFile(t, [{ name: 'writer', token: WRITER, prefixes: [''], access: 'write' }])
  const args = ['--tcp-listen', '127.0.0.1:0', '--tcp-tokens', tokens, '--log-level', 'debug']
  const named = await Named.start(t, { args })
  const answers: string[] = []
  const lease = await named.grant()
  for (const [method, path, body] of [
    ['PUT', '/v1/names/a', { lease, record: { endpoint: 'e' }, ownerKey: 'owner-secret' }],
    [
      'PUT',
      '/v1/names/a',
      { lease: 'ffffffffffffffff', record: { endpoint: 'e' }, ownerKey: 'owner-secret' },
    ],
    ['PUT', '/v1/names/a', { ownerKey: 'owner-secret', x: 'owner-secret' }],
    ['GET', '/v1/names/a'],
    ['GET', '/v1/names'],
    ['GET', '/v1/leases'],
    ['GET', '/metrics'],
    ['GET', '/v1/openapi.json'],
    ['GET', '/readyz'],
  ] as const) {
    answers.push((await named.ask(method, path, body === undefined ? {} : { body })).text)
  }
  for (const token of [WRITER, `${WRITER}-wrong`]) {
    const headers = { authorization: `Bearer ${token}` }
    answers.push(
      (await askHttp({ host: '127.0.0.1', port: portOf(named), method: 'GET', path: '/v1/names', headers }))
        .text,
    )
  }
  const second = new Named(t, { folder: named.folder, args: ['--socket-path', join(named.folder, 'other')] })
  t.strictSame(await second.spawn(), { code: 1, signal: null }, 'the store is locked')
  await named.end('SIGTERM')
  for (const text of [...answers, named.log, named.stderr, second.log, second.stderr]) {
    for (const secret of [named.storePath, tokens, WRITER, 'owner-secret']) t.notMatch(text, secret)
  }
})

function tokenFile(t: Test, tokens: unknown, mode = 0o600): string {
  const path = join(temporaryFolder(t), 'tokens.yaml')
  writeTokens(path, tokens)
  chmodSync(path, mode)
  return path
}

function writeTokens(path: string, tokens: unknown): void {
  writeFileSync(path, JSON.stringify({ tokens }), { mode: 0o600 })
}

function portOf(named: Named): number {
  return Number(named.messages().find(({ port }) => port !== undefined)?.port)
}

function askTls(port: number, method: string, path: string, token?: string): Promise<{ status: number }> {
  return new Promise((resolve, reject) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const options = {
      host: '127.0.0.1',
      port,
      method,
      path,
      headers,
      rejectUnauthorized: false,
      agent: false as const,
    }
    const call = tlsRequest(options, response => {
      response.resume()
      resolve({ status: response.statusCode ?? 0 })
    })
    call.once('error', reject)
    call.end()
  })
}
