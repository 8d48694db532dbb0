/** The interface of the real daemon over its unix socket; every answer is held against the OpenAPI document. */
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { Validator } from '@seriousme/openapi-schema-validator'
import t, { type Test } from 'tap'
import { ApiContract } from '../support/api-contract.ts'
import { type HttpQuestion, type HttpReply, Named } from '../support/named.ts'
import { eventually } from '../support/until.ts'

const named = await Named.start(t)
const contract = await ApiContract.of(named)

async function ask(t: Test, method: string, path: string, question: HttpQuestion = {}): Promise<HttpReply> {
  const reply = await named.ask(method, path, question)
  contract.check(t, method, path, reply)
  return reply
}

const nameOf = (name: string): string => `/v1/names/${encodeURIComponent(name)}`
const register = (t: Test, name: string, lease: string, more: object = {}): Promise<HttpReply> =>
  ask(t, 'PUT', nameOf(name), { body: { lease, record: { endpoint: 'e' }, ...more } })
async function grant(t: Test, ttlMs = 600_000): Promise<string> {
  return String((await ask(t, 'POST', '/v1/leases', { body: { ttlMs } })).json.id)
}
function isProblem(t: Test, reply: HttpReply, status: number, code: string): void {
  t.equal(reply.status, status, code)
  t.equal(reply.headers['content-type'], 'application/problem+json')
  t.match(reply.json, { type: `urn:fastsockets:problem:${code}`, status, title: String, detail: String })
}

t.test('the document is valid OpenAPI 3.1 and knows every operation', async t => {
  const { valid, errors } = await new Validator().validate(JSON.parse(JSON.stringify(contract.document)))
  t.ok(valid, JSON.stringify(errors))
  t.equal(contract.operations.length, 16)
  const ids = contract.operations.map(({ operation }) => operation.operationId)
  t.equal(new Set(ids).size, ids.length)
})

t.test('a lease is granted, kept alive, looked up, listed and revoked', async t => {
  const granted = await ask(t, 'POST', '/v1/leases', { body: { ttlMs: 5000 } })
  t.equal(granted.status, 201)
  t.match(granted.json, { owner: `uid:${process.getuid?.()}`, ttlMs: 5000, names: 0, expiresInMs: 5000 })
  const path = `/v1/leases/${granted.json.id}`
  t.match((await ask(t, 'POST', `${path}/keepalive`)).json, { ttlMs: 5000, expiresInMs: 5000 })
  t.match((await ask(t, 'GET', path)).json, { id: granted.json.id })
  t.match((await ask(t, 'GET', '/v1/leases')).text, String(granted.json.id))
  t.equal((await ask(t, 'DELETE', path)).status, 204)
  for (const gone of [ask(t, 'GET', path), ask(t, 'DELETE', path), ask(t, 'POST', `${path}/keepalive`)]) {
    isProblem(t, await gone, 404, 'no-such-lease')
  }
  t.match((await ask(t, 'POST', '/v1/leases')).json, { ttlMs: 10_000 }, 'without a body: the usual TTL')
})

t.test('a name is registered with everything, and looked up', async t => {
  const lease = await grant(t)
  const record = {
    kind: 'inet',
    endpoint: '0123456789abcdef',
    host: 'fedcba9876543210',
    pid: 4711,
    uid: process.getuid?.(),
    drivers: [
      { name: 'shm', address: Buffer.from('where').toString('base64') },
      { name: 'verbs', address: '' },
    ],
    tag: '00000000deadbeef',
    version: 3,
    port: 6763,
    labels: { room: '12', 'app/v': 'x ☃' },
  }
  const name = 'inet:tcp:fe80::1%eth0:8080'
  const put = await ask(t, 'PUT', nameOf(name), { body: { lease, record } })
  t.equal(put.status, 200)
  t.strictSame(put.json.record, record)
  const got = await ask(t, 'GET', nameOf(name))
  t.strictSame(got.json, put.json)
  t.match(got.headers['fastsockets-cursor'], new RegExp(`^[0-9a-f]{12}-${put.json.revision}$`))
  t.match(got.json, { name, lease, owner: `uid:${process.getuid?.()}` })
})

t.test('what is left out of a record has a default, or is known of the caller', async t => {
  const lease = await grant(t)
  const { json } = await register(t, 'plain', lease)
  t.strictSame(json.record, {
    kind: 'endpoint',
    endpoint: 'e',
    host: '',
    pid: process.pid,
    uid: process.getuid?.(),
    drivers: [],
    tag: '0000000000000000',
    version: 1,
    labels: {},
  })
})

t.test('any name that is one can be registered, with its slashes escaped or not', async t => {
  const lease = await grant(t)
  const names = ['a', '.', '..', '/', '//', 'a/b', '-', '_', 'x'.repeat(200), 'inet:tcp:::1:80', 'names', '0']
  for (const name of names) {
    t.equal((await register(t, name, lease)).status, 200, name)
    t.equal((await ask(t, 'GET', nameOf(name))).json.name, name)
  }
  t.equal((await ask(t, 'GET', '/v1/names/a/b')).json.name, 'a/b')
  for (const name of [
    'A',
    'a b',
    'x'.repeat(201),
    'ü',
    'a\0',
    'inet:tcp:10.0.0.7:0',
    'inet:udp:10.0.0.7:80',
    'a:b',
  ]) {
    isProblem(t, await register(t, name, lease), 400, 'malformed')
    isProblem(t, await ask(t, 'GET', nameOf(name)), 400, 'malformed')
  }
  isProblem(t, await ask(t, 'GET', '/v1/names/'), 400, 'malformed')
  isProblem(t, await ask(t, 'GET', '/v1/names/%zz'), 400, 'malformed')
})

t.test('a name of another owner is a conflict', async t => {
  const [mine, theirs] = [await grant(t), await grant(t, 60_000)]
  t.equal((await register(t, 'held', theirs)).status, 200)
  const refused = await register(t, 'held', mine)
  isProblem(t, refused, 409, 'name-held')
  t.ok(Number(refused.json.retryAfterMs) <= 60_000, 'it says when it will be free')
  t.ok(Number(refused.headers['retry-after']) > 0)
  t.equal((await register(t, 'held', theirs)).status, 200, 'the holder may change it')
  isProblem(t, await ask(t, 'DELETE', `${nameOf('held')}?lease=${mine}`), 409, 'name-held')
  await ask(t, 'DELETE', `/v1/leases/${theirs}`)
  t.equal((await register(t, 'held', mine)).status, 200, 'it is free after their lease')
})

t.test('takeover: with the same owner key at once, else when the lease is over', async t => {
  // Root may take over anything; another user shows the rule. See security.test.ts for other users.
  const [first, second] = [await grant(t), await grant(t)]
  await register(t, 'taken', first, { ownerKey: 'secret' })
  isProblem(t, await register(t, 'taken', second, { ownerKey: 'secret' }), 409, 'name-held')
  const taken = await register(t, 'taken', second, { ownerKey: 'secret', takeover: true })
  t.equal(taken.json.lease, second)
  t.notMatch((await ask(t, 'GET', nameOf('taken'))).text, 'secret')
  const short = await grant(t, 1000)
  await register(t, 'short', short)
  await eventually('its end', async () => (await register(t, 'short', first)).status === 200)
})

t.test('under a lease that is none, or with a record that is none, nothing is registered', async t => {
  const lease = await grant(t)
  isProblem(t, await register(t, 'x', '00000000000000ff'), 404, 'no-such-lease')
  const bodies: [what: string, body: unknown][] = [
    ['nothing', {}],
    ['no record', { lease }],
    ['no endpoint', { lease, record: {} }],
    ['a strange member', { lease, record: { endpoint: 'e' }, x: 1 }],
    ['a strange member of the record', { lease, record: { endpoint: 'e', x: 1 } }],
    ['an endpoint with spaces', { lease, record: { endpoint: 'e e' } }],
    ['a lease that is no lease', { lease: 'x', record: { endpoint: 'e' } }],
    ['the wrong kind', { lease, record: { endpoint: 'e', kind: 'inet' } }],
    ['a port that only listeners have', { lease, record: { endpoint: 'e', port: 80 } }],
    ['a negative pid', { lease, record: { endpoint: 'e', pid: -1 } }],
    [
      'an address that is not base64',
      { lease, record: { endpoint: 'e', drivers: [{ name: 'shm', address: '!' }] } },
    ],
    [
      'too many drivers',
      { lease, record: { endpoint: 'e', drivers: Array(17).fill({ name: 'a', address: '' }) } },
    ],
    [
      'a label that would change objects',
      { lease, record: { endpoint: 'e', labels: JSON.parse('{"__proto__":"x"}') } },
    ],
    ['a list', []],
    ['null', null],
    ['text', 'x'],
  ]
  for (const [what, body] of bodies) {
    const reply = await ask(t, 'PUT', nameOf('x'), { body })
    isProblem(t, reply, 400, 'malformed')
    t.ok(Array.isArray(reply.json.errors), what)
  }
  isProblem(t, await ask(t, 'GET', nameOf('x')), 404, 'no-such-name')
  isProblem(t, await ask(t, 'DELETE', nameOf('x')), 404, 'no-such-name')
})

t.test('a TTL within the limits, and no other', async t => {
  for (const ttlMs of [999, 86_400_001]) {
    isProblem(t, await ask(t, 'POST', '/v1/leases', { body: { ttlMs } }), 400, 'malformed')
  }
  for (const ttlMs of ['5000', 1.5, 0, -1, null]) {
    isProblem(t, await ask(t, 'POST', '/v1/leases', { body: { ttlMs } }), 400, 'malformed')
  }
})

t.test('names are listed by prefix, in order, page by page', async t => {
  const lease = await grant(t)
  const names = Array.from({ length: 25 }, (_, i) => `page/${String(i).padStart(2, '0')}`)
  for (const name of [...names].reverse()) await register(t, name, lease)
  const pages: string[][] = []
  for (let after = ''; ; ) {
    const { json } = await ask(t, 'GET', `/v1/names?prefix=page/&limit=10${after && `&after=${after}`}`)
    const entries = json.entries as unknown as { name: string }[]
    pages.push(entries.map(({ name }) => name))
    if (json.next === undefined) break
    after = encodeURIComponent(String(json.next))
  }
  const whole = await ask(t, 'GET', '/v1/names?prefix=page/&limit=25')
  t.equal(whole.json.next, undefined, 'there is no page after the last name')
  t.strictSame(pages, [names.slice(0, 10), names.slice(10, 20), names.slice(20)])
  for (const query of [
    'limit=0',
    'limit=1001',
    'limit=x',
    'prefix=a b',
    'prefix=%C3%BC',
    'unknown=1',
    'prefix=a&prefix=b',
  ]) {
    isProblem(t, await ask(t, 'GET', `/v1/names?${query.replace(' ', '%20')}`), 400, 'malformed')
  }
})

t.test(
  'what a registration says is where its own change stands, whatever was made together with it',
  async t => {
    const [first, second] = [await grant(t), await grant(t)]
    const take = { ownerKey: 'secret', takeover: true }
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, i) => register(t, 'contested', i % 2 ? first : second, take)),
    )
    for (const { headers, json } of replies) {
      t.match(headers['fastsockets-cursor'], new RegExp(`-${json.revision}$`))
    }
  },
)

t.test('every change has a later revision', async t => {
  const lease = await grant(t)
  let last = 0
  for (const change of [
    () => register(t, 'r', lease),
    () => register(t, 'r', lease),
    () => ask(t, 'DELETE', nameOf('r')),
  ]) {
    const { json } = await change()
    t.ok(Number(json.revision) > last)
    last = Number(json.revision)
  }
})

t.test('health, readiness and metrics', async t => {
  t.strictSame((await ask(t, 'GET', '/healthz')).json, { status: 'ok' })
  t.strictSame((await ask(t, 'GET', '/readyz')).json, { status: 'ok' })
  const { text, headers } = await ask(t, 'GET', '/metrics')
  t.match(headers['content-type'], /^text\/plain/)
  for (const metric of [
    'names',
    'leases',
    'watchers',
    'requests_total',
    'request_seconds_bucket',
    'commit_seconds_count',
  ]) {
    t.match(text, new RegExp(`^fastsockets_named_${metric}[ {]`, 'm'), metric)
  }
  t.match(text, /^process_resident_memory_bytes /m)
  for (const line of text.split('\n').filter(line => line !== '')) {
    t.match(line, /^(# (HELP|TYPE) \S+ .+|[a-zA-Z_:][\w:]*(\{(\w+="[^"]*",?)*\})? [-+\d.e]+)$/, line)
  }
  t.notMatch(text, / 9223372036/, 'nothing that nobody has measured')
  const told = [...text.matchAll(/^# TYPE (fastsockets_named_\w+) /gm)].map(([, metric]) => metric)
  const manual = readFileSync(new URL('../../../docs/reference/metrics.md', import.meta.url), 'utf8')
  const explained = [...manual.matchAll(/`(fastsockets_named_\w+)`/g)].map(([, metric]) => metric)
  t.strictSame(explained.sort(), told.sort(), 'the manual says what each means')
})

t.test('what does not exist, a method that does not fit, and a body that is not JSON', async t => {
  for (const path of ['/', '/v1', '/v2/names', '/v1/lease', '/v1/leases/', '/favicon.ico']) {
    const { status } = await ask(t, 'GET', path)
    t.ok(status === 404 || status === 400, path)
  }
  const wrong = await ask(t, 'POST', '/v1/names')
  isProblem(t, wrong, 405, 'bad-method')
  t.equal(wrong.headers.allow, 'GET, HEAD, OPTIONS')
  isProblem(t, await ask(t, 'PATCH', '/v1/leases'), 405, 'bad-method')
  const json = { 'content-type': 'application/json' }
  for (const text of ['{', 'x', '{"a":1}}', Buffer.from([0x7b, 0xff, 0x7d])]) {
    isProblem(
      t,
      await ask(t, 'POST', '/v1/leases', {
        text,
        headers: { ...json, 'content-length': String(Buffer.byteLength(text)) },
      }),
      400,
      'malformed',
    )
  }
  isProblem(
    t,
    await ask(t, 'POST', '/v1/leases', {
      text: 'a=b',
      headers: { 'content-type': 'text/plain', 'content-length': '3' },
    }),
    415,
    'bad-media-type',
  )
})

t.test('HTTP as it is meant: HEAD, OPTIONS, Host, CONNECT', async t => {
  await register(t, 'http', await grant(t))
  for (const path of [
    nameOf('http'),
    '/v1/names',
    '/v1/leases',
    '/healthz',
    '/metrics',
    '/v1/openapi.json',
  ]) {
    const [get, head] = [await ask(t, 'GET', path), await named.ask('HEAD', path)]
    t.equal(head.status, get.status, path)
    t.equal(head.headers['content-type'], get.headers['content-type'])
    t.ok(path === '/metrics' || head.headers['content-length'] === get.headers['content-length'])
    t.equal(head.text, '')
  }
  t.equal((await named.ask('HEAD', nameOf('none'))).status, 404)
  t.equal(
    (await named.ask('HEAD', '/v1/watch')).status,
    405,
    'a stream has no end, and so no head of its own',
  )
  const methods: [path: string, allow: string][] = [
    ['/v1/names', 'GET, HEAD, OPTIONS'],
    [nameOf('http'), 'GET, HEAD, PUT, DELETE, OPTIONS'],
    ['/v1/leases', 'GET, HEAD, POST, OPTIONS'],
    ['/v1/leases/0123456789abcdef/keepalive', 'POST, OPTIONS'],
    ['/v1/watch', 'GET, POST, OPTIONS'],
    ['*', 'HEAD, GET, PUT, POST, DELETE, OPTIONS'],
  ]
  for (const [path, allow] of methods) {
    const { status, headers, text } = await named.ask('OPTIONS', path)
    t.strictSame([status, headers.allow, text], [204, allow, ''], path)
    if (path !== '*') t.equal((await named.ask('PATCH', path)).headers.allow, allow)
  }
  t.equal((await named.ask('OPTIONS', '/nothing')).status, 404)
  t.equal((await named.ask('GET', 'http://example.org/healthz')).status, 200, 'an absolute URL')
  for (const [text, status] of [
    ['GET /healthz HTTP/1.1\r\nhost: x\r\n', 200],
    ['GET /healthz HTTP/1.1\r\n', 400],
    ['GET /healthz HTTP/1.0\r\n', 200],
    ['CONNECT example.org:80 HTTP/1.1\r\nhost: x\r\n', 400],
  ] as const) {
    const heard = await say(t, `${text}connection: close\r\n\r\n`)
    t.match(heard, new RegExp(`^HTTP/1\\.1 ${status} `), text)
    if (status === 400) t.match(heard, 'urn:fastsockets:problem:malformed')
  }
})

/** What comes back for these bytes, until the end. */
async function say(t: Test, text: string): Promise<string> {
  const socket = connect(named.socketPath)
  t.teardown(() => socket.destroy())
  socket.setEncoding('utf8').write(text)
  let heard = ''
  for await (const chunk of socket) heard += chunk
  return heard
}
