/** Everything has a limit, and beyond it there is a clear answer. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import type { NameError } from '../../nameservice/index.ts'
import { ApiContract } from '../support/api-contract.ts'
import { type HttpReply, Named, RawWatch } from '../support/named.ts'
import { eventually } from '../support/until.ts'

function isProblem(t: Test, { status, json, headers }: HttpReply, wanted: number, code: string): void {
  t.equal(status, wanted, code)
  t.equal(headers['content-type'], 'application/problem+json')
  t.match(json, { type: `urn:fastsockets:problem:${code}`, status: wanted, title: String, detail: /\d/ })
}

t.test('leases of an owner, leases altogether, names under a lease, names altogether', async t => {
  const named = await Named.start(t, {
    args: ['--limits-leases-per-owner', '3', '--limits-names-per-lease', '4', '--limits-names', '6'],
  })
  const [first, second, third] = [await named.grant(), await named.grant(), await named.grant()]
  const contract = await ApiContract.of(named)
  const refused = await named.ask('POST', '/v1/leases')
  isProblem(t, refused, 403, 'limit-leases')
  contract.check(t, 'POST', '/v1/leases', refused)
  // All at once: a limit is not passed by being quick.
  const many = await Promise.all(Array.from({ length: 20 }, (_, i) => named.register(`a/${i}`, first)))
  t.equal(many.filter(({ status }) => status === 200).length, 4)
  isProblem(t, many.find(({ status }) => status !== 200) as HttpReply, 403, 'limit-names')
  await named.register('b/1', second)
  await named.register('b/2', second)
  isProblem(t, await named.register('b/3', third), 403, 'limit-total')
  t.equal((await named.register('b/1', second)).status, 200, 'what is there may be changed')
  await named.ask('DELETE', `/v1/leases/${first}`)
  t.equal((await named.register('b/3', third)).status, 200)

  const total = await Named.start(t, { args: ['--limits-leases', '1'] })
  await total.grant()
  isProblem(t, await total.ask('POST', '/v1/leases'), 403, 'limit-total')
})

t.test('the size of all records together', async t => {
  const named = await Named.start(t, { args: ['--limits-records-bytes', '20000'] })
  const lease = await named.grant()
  const large = {
    endpoint: 'e',
    labels: Object.fromEntries('abcdefghi'.split('').map(k => [k, 'x'.repeat(250)])),
  }
  const many = await Promise.all(Array.from({ length: 20 }, (_, i) => named.register(`n/${i}`, lease, large)))
  const kept = many.filter(({ status }) => status === 200)
  t.ok(kept.length >= 7 && kept.length <= 8, `${kept.length} of 20`)
  isProblem(t, many.find(({ status }) => status !== 200) as HttpReply, 403, 'limit-total')
  t.equal((await named.register('n/0', lease, large)).status, 200, 'one that does not grow may be changed')
  t.equal((await named.register('n/0', lease)).status, 200)
  t.equal((await named.register('n/other', lease, large)).status, 200, 'what was given back may be used')
  isProblem(t, await named.register('n/0', lease, large), 403, 'limit-total')
  await named.ask('DELETE', `/v1/leases/${lease}`)
  t.equal((await named.register('n/0', await named.grant(), large)).status, 200)
})

t.test('watchers of an owner, and altogether', async t => {
  const named = await Named.start(t, { args: ['--limits-watchers-per-owner', '2'] })
  const watches = [await new RawWatch(t, named).started(), await new RawWatch(t, named).started()]
  isProblem(t, await named.ask('GET', '/v1/watch'), 403, 'limit-watchers')
  watches[0]?.close()
  await eventually('its place', async () => {
    const watch = await new RawWatch(t, named).started()
    return watch.status === 200
  })
  const total = await Named.start(t, { args: ['--limits-watchers', '1'] })
  await new RawWatch(t, total).started()
  isProblem(t, await total.ask('GET', '/v1/watch'), 403, 'limit-total')
  const names = Array.from({ length: 257 }, (_, i) => `n${i}`)
  t.equal((await total.ask('POST', '/v1/watch', { body: { names } })).status, 400, 'names of one watch')
})

t.test('requests a second', async t => {
  const named = await Named.start(t, { args: ['--limits-requests-per-second', '50'] })
  const replies = await Promise.all(Array.from({ length: 200 }, () => named.ask('GET', '/v1/names')))
  const refused = replies.filter(({ status }) => status === 429)
  t.ok(refused.length > 0)
  isProblem(t, refused[0] as HttpReply, 429, 'rate')
  t.ok(Number(refused[0]?.headers['retry-after']) >= 1)
  t.ok(Number(refused[0]?.json.retryAfterMs) >= 1)
  await eventually('more tokens', async () => (await named.ask('GET', '/v1/names')).status === 200)
})

t.test('the client waits as long as it is told, and asks again', async t => {
  const named = await Named.start(t, { args: ['--limits-requests-per-second', '50'] })
  const { api } = named.client()
  const { id } = await api.grant(600_000)
  const names = Array.from({ length: 120 }, (_, i) => `n/${String(i).padStart(3, '0')}`)
  const registered = await Promise.all(
    names.map(name => api.register(name, id, { endpoint: 'e' }, { timeoutMs: 20_000 })),
  )
  const revisions = new Set(registered.map(({ entry }) => entry.revision))
  t.equal(revisions.size, names.length)
  const { entries } = await api.list('n/')
  t.strictSame(
    entries.map(({ name, revision }) => [name, revision]),
    registered.map(({ entry }) => [entry.name, entry.revision]),
    'each was registered once',
  )
  const looked = await Promise.all(names.map(name => api.lookUp(name, { timeoutMs: 20_000 })))
  t.strictSame(
    looked.map(({ entry }) => entry?.name),
    names,
  )
  const { text } = await eventually('the metrics', async () => {
    const reply = await named.ask('GET', '/metrics')
    return reply.status === 200 && reply
  })
  const [, refusals = '0'] = /^fastsockets_named_refusals_total\{[^}]*rate[^}]*\} (\d+)/m.exec(text) ?? []
  t.ok(Number(refusals) > 0, `${refusals} were refused first`)
})

t.test('a question that has no time to wait is refused, and one that waits ends with its client', async t => {
  const named = await Named.start(t, { args: ['--limits-requests-per-second', '1'] })
  const client = named.client()
  await eventually('a wait that is longer than what follows takes', async () => {
    const { json } = await named.ask('GET', '/v1/names')
    return Number(json.retryAfterMs) > 900
  })
  t.match(await client.api.lookUp('a', { timeoutMs: 300 }).catch(error => error as NameError), {
    code: 'ERR_NAMES_REFUSED',
    problem: { status: 429, retryAfterMs: Number },
  })
  const waiting = [1, 2, 3, 4].map(() => client.api.lookUp('a', { timeoutMs: 600_000 }))
  const ends = Promise.allSettled(waiting)
  await Promise.race(waiting)
  await client.close()
  const failed = (await ends).filter(({ status }) => status === 'rejected')
  t.ok(failed.length > 0, 'they do not wait for ever')
  for (const { reason } of failed as PromiseRejectedResult[]) {
    t.match(reason, { code: 'ERR_NAMES_UNAVAILABLE', message: /the client was closed/ })
  }
})

t.test('the size of a request', async t => {
  const named = await Named.start(t, {
    args: ['--limits-body-bytes', '2048', '--limits-header-bytes', '2048'],
  })
  const lease = await named.grant()
  const labels = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`l${i}`, 'x'.repeat(100)]))
  isProblem(t, await named.register('a', lease, { endpoint: 'e', labels }), 413, 'too-large')
  t.equal((await named.register('a', lease)).status, 200, 'the connection is still good')

  // The request has no length.
  const socket = await connected(t, named)
  socket.write(
    'POST /v1/leases HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n',
  )
  for (let i = 0; i < 5; i++) socket.write(`400\r\n${' '.repeat(1024)}\r\n`)
  t.match(await heard(socket, /HTTP.*urn:fastsockets:problem:too-large/s), /^HTTP\/1.1 413 /)

  const head = await connected(t, named)
  head.write(`GET /v1/names?prefix=${'x'.repeat(3000)} HTTP/1.1\r\nhost: x\r\n\r\n`)
  t.match(await heard(head, /\}$/), /^HTTP\/1.1 431 .*urn:fastsockets:problem:headers-too-large/s)
  const { text } = await named.ask('GET', '/metrics')
  t.match(text, /^fastsockets_named_refusals_total\{problem="headers-too-large"\} 1$/m)
})

t.test('connections: the one that is idle the longest goes; if none is, the newcomer is told', async t => {
  const named = await Named.start(t, { args: ['--limits-connections', '10'] })
  const idle: Socket[] = []
  for (let i = 0; i < 30; i++) idle.push(await connected(t, named))
  t.equal((await named.ask('GET', '/healthz')).status, 200)
  await eventually('the oldest to go', () => idle.filter(socket => socket.destroyed).length >= 20)
  t.notOk(idle.at(-1)?.destroyed)

  const busy = await Named.start(t, { args: ['--limits-connections', '3'] })
  const watches = [0, 1, 2].map(() => new RawWatch(t, busy))
  for (const watch of watches) await watch.started()
  const late = await connected(t, busy)
  t.match(await heard(late, /\}$/), /^HTTP\/1.1 429 .*urn:fastsockets:problem:limit-connections/s)
  for (const watch of watches) watch.close()
  const counted = await eventually('a place', async () => {
    const reply = await busy.ask('GET', '/metrics').catch(() => undefined)
    return reply?.status === 200 && reply.text
  })
  t.match(counted, /^fastsockets_named_refusals_total\{problem="limit-connections"\} [1-9]/m)
})

async function connected(t: Test, { socketPath }: Named): Promise<Socket> {
  const socket = connect(socketPath)
  socket.on('error', () => {})
  socket.resume()
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

async function heard(socket: Socket, pattern: RegExp): Promise<string> {
  let text = ''
  socket.setEncoding('utf8').on('data', chunk => {
    text += chunk
  })
  await eventually(`${pattern}`, () => pattern.test(text))
  return text
}

t.test('leases are listed in pages, and the client follows them', async t => {
  const named = await Named.start(t, { args: ['--limits-leases-per-owner', '2000'] })
  const contract = await ApiContract.of(named)
  const few = [await named.grant(), await named.grant(), await named.grant()].sort()
  const [first, second] = few
  const page = await named.ask('GET', '/v1/leases?limit=2')
  contract.check(t, 'GET', '/v1/leases', page)
  t.match(page.json, { leases: [{ id: first }, { id: second }], next: second })
  const last = await named.ask('GET', `/v1/leases?limit=2&after=${second}`)
  contract.check(t, 'GET', '/v1/leases', last)
  t.match(last.json, { leases: [{ id: few[2] }] })
  t.equal(last.json.next, undefined)
  t.equal((await named.ask('GET', '/v1/leases?limit=1001')).status, 400)
  t.equal((await named.ask('GET', '/v1/leases?after=x')).status, 400)

  const many = new Set(few)
  while (many.size < 1200) {
    const granted = await Promise.all(Array.from({ length: 50 }, () => named.grant()))
    for (const id of granted) many.add(id)
  }
  const listed = (await named.client().api.leases()).map(({ id }) => id)
  t.strictSame(listed, [...many].sort())
})
