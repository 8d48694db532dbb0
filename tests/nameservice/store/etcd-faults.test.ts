/** Real daemons on a real etcd: many share one truth, and etcd may go and come back. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { Etcd, etcdAbsence } from '../../support/etcd.ts'
import { Named, RawWatch, temporaryFolder } from '../../support/named.ts'
import { seededRandom } from '../../support/random.ts'
import { secretCopy } from '../../support/secret-file.ts'
import { eventually } from '../../support/until.ts'

const FIXTURES = new URL('../../../../tests/fixtures/', import.meta.url)
const CERTIFICATE = fileURLToPath(new URL('localhost-cert.pem', FIXTURES))
const KEY = secretCopy(new URL('localhost-key.pem', FIXTURES))
const absence = etcdAbsence()

if (absence !== undefined) {
  t.comment(`SKIPPED: daemons on etcd: ${absence}`)
  t.test('daemons on etcd', { skip: absence }, async () => {})
} else testDaemonsOnEtcd(t)

function onEtcd(etcd: Etcd): { args: string[] } {
  return { args: ['--store-kind', 'etcd', '--etcd-endpoints', etcd.endpoint] }
}

/** Each change with its place in the history. */
function idsOf({ events }: RawWatch): string[] {
  const changes = events.filter(({ event }) => event === 'change')
  return changes.map(({ id, data }) => `${id} ${data.type} ${data.name}`)
}

function testDaemonsOnEtcd(t: Test): void {
  t.test('two daemons share one truth, and a watch goes on at the other one', async t => {
    const etcd = await Etcd.start(t)
    const [one, two] = [await Named.start(t, onEtcd(etcd)), await Named.start(t, onEtcd(etcd))]
    for (let i = 0; i < 20; i++) {
      const path = `/v1/leases/${await one.grant()}`
      t.equal((await two.ask('POST', `${path}/keepalive`)).status, 200, 'the other knows it at once')
    }
    const lease = await one.grant()
    t.equal((await one.register('a', lease)).status, 200)
    t.equal((await one.lookUp('a')).status, 200, 'what was acknowledged is there at once')
    await eventually('the other', async () => (await two.lookUp('a')).status === 200)
    t.equal((await two.register('b', lease)).status, 200, 'a lease of the one is a lease of the other')
    t.equal((await two.register('a', await two.grant())).status, 409)

    const watch = await new RawWatch(t, one).started()
    await two.register('c', lease)
    await eventually('the change', () => watch.changes.length === 1)
    await one.kill()
    await two.register('d', lease)
    const next = await new RawWatch(t, two, '', { 'last-event-id': watch.lastId }).started()
    await two.ask('DELETE', `/v1/leases/${lease}`)
    await eventually('the rest', () => next.changes.length === 5)
    t.strictSame(next.changes, ['+d', '-a', '-b', '-c', '-d'])
    await one.up()
    const back = await new RawWatch(t, one, '', { 'last-event-id': watch.lastId }).started()
    await eventually('the rest', () => back.changes.length === 5)
    t.strictSame(back.changes, next.changes, 'a daemon that starts knows what happened before')
  })

  t.test('a watch that wanders between daemons, over SIGKILLs of all of them and of etcd', async t => {
    const random = seededRandom(t)
    const etcd = await Etcd.start(t)
    const daemons = [await Named.start(t, onEtcd(etcd)), await Named.start(t, onEtcd(etcd))] as const
    const any = (): Named => daemons[random.within(0, 1)] as Named
    const { headers } = await any().lookUp('x')
    const start = String(headers['fastsockets-cursor'])
    const heard: string[] = []
    let lastId = start
    let watch = await new RawWatch(t, any(), `?after=${start}`).started()
    const leave = (): void => {
      watch.close()
      heard.push(...idsOf(watch))
      lastId = watch.lastId || lastId
    }
    const arrive = async (): Promise<void> => {
      watch = await new RawWatch(t, any(), '', { 'last-event-id': lastId }).started()
    }
    const isReady = async (named: Named): Promise<boolean> =>
      (await named.ask('GET', '/readyz')).status === 200
    for (let round = 0; round < 12; round++) {
      const lease = await any().grant()
      // The end of a lease is one revision with many changes, which a watcher may leave in the middle.
      const names = Array.from({ length: 20 }, (_, i) => `n/${round}/${i}`)
      const replies = await Promise.all(names.map(name => any().register(name, lease)))
      t.ok(replies.every(({ status }) => status === 200))
      if (random.chance(0.7)) t.equal((await any().ask('DELETE', `/v1/leases/${lease}`)).status, 204)
      leave()
      if (round % 3 === 1) {
        const victim = any()
        await victim.kill()
        await victim.up()
      }
      if (round % 6 === 5) {
        await etcd.stop('SIGKILL')
        await etcd.up()
        for (const daemon of daemons) await eventually('etcd', () => isReady(daemon))
      }
      await arrive()
    }
    await any().register('last', await any().grant())
    await eventually('the last', () => watch.changes.includes('+last'))
    leave()
    const whole = await new RawWatch(t, any(), `?after=${start}`).started()
    await eventually('all of it at once', () => whole.changes.includes('+last'))
    t.ok(heard.length > 240)
    t.strictSame(heard, idsOf(whole), 'each change once, in order')
  })

  t.test('etcd is stopped and comes back', async t => {
    const etcd = await Etcd.start(t)
    const named = await Named.start(t, onEtcd(etcd))
    const client = named.client()
    const registration = client.register({ name: 'mine', endpoint: 'e' })
    await registration.registered
    const lease = await named.grant()
    await named.register('a', lease)
    const watch = await new RawWatch(t, named).started()
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      await etcd.stop(signal)
      await eventually('the daemon to notice', async () => (await named.ask('GET', '/readyz')).status === 503)
      const stale = await named.lookUp('a')
      t.equal(stale.status, 200, 'look-ups are answered')
      t.equal(stale.headers['fastsockets-stale'], 'true', 'and it is said that they may be out of date')
      t.match(await client.lookup('a'), { status: 'found', stale: true })
      const refused = await named.register('b', lease)
      t.equal(refused.status, 503)
      t.match(refused.json, { type: 'urn:fastsockets:problem:store-unavailable' })
      t.equal((await named.ask('GET', '/healthz')).status, 200)
      await etcd.up()
      await eventually(
        'all to be well',
        async () => (await named.register(signal.toLowerCase(), lease)).status === 200,
      )
      t.equal((await named.ask('GET', '/readyz')).status, 200)
      t.equal((await named.lookUp('a')).headers['fastsockets-stale'], undefined)
      t.match(await client.lookup('mine'), { status: 'found', stale: false })
    }
    await eventually('the changes', () => watch.changes.length >= 2)
    t.strictSame(watch.changes, ['+sigterm', '+sigkill'], 'the watcher has noticed nothing else')
    t.notOk(watch.isEnded)
    t.equal(registration.state, 'registered')
  })

  t.test('etcd loses everything: clients are back by themselves', async t => {
    const etcd = await Etcd.start(t)
    const named = await Named.start(t, onEtcd(etcd))
    const client = named.client({ ttlMs: 5000 })
    const registration = client.register({ name: 'mine', endpoint: 'e' })
    const first = await registration.registered
    await etcd.stop('SIGKILL')
    etcd.forget()
    await etcd.up()
    await eventually('the name', async () => {
      const { json } = await named.lookUp('mine')
      return json.lease !== undefined && String(json.lease) !== first.lease
    })
  })

  t.test('an etcd that is full refuses all changes: that is told, and leases live on', async t => {
    const etcd = await Etcd.start(t)
    const named = await Named.start(t, onEtcd(etcd))
    const lease = await named.grant(5000)
    await named.register('a', lease)
    const alarm = (action: string) =>
      etcd.ask('maintenance/alarm', { action, memberID: '1', alarm: 'NOSPACE' })
    await alarm('ACTIVATE')
    t.equal((await named.register('b', lease)).status, 503)
    t.match((await named.ask('GET', '/readyz')).json, { reasons: ['the store is unavailable'] })
    const told = named.messages().find(({ level }) => level === 'error')
    t.match(told, { reason: 'etcd takes no changes: etcd refused: gRPC code 8' })
    const startMs = performance.now()
    while (performance.now() - startMs < 7000) {
      t.equal((await named.ask('POST', `/v1/leases/${lease}/keepalive`)).status, 200)
      t.equal((await named.ask('GET', '/readyz')).status, 503, 'until a change is taken')
      await delay(500)
    }
    t.equal((await named.lookUp('a')).status, 200)
    await alarm('DEACTIVATE')
    await eventually('it to be well', async () => (await named.ask('GET', '/readyz')).status === 200)
    t.equal((await named.register('b', lease)).status, 200)
  })

  t.test('an etcd that hangs is noticed', async t => {
    const etcd = await Etcd.start(t)
    const named = await Named.start(t, onEtcd(etcd))
    await named.register('a', await named.grant())
    etcd.signal('SIGSTOP')
    await eventually('the daemon to notice', async () => (await named.ask('GET', '/readyz')).status === 503)
    t.equal((await named.lookUp('a')).headers['fastsockets-stale'], 'true')
    etcd.signal('SIGCONT')
    await eventually('it to be back', async () => (await named.ask('GET', '/readyz')).status === 200)
    t.equal((await named.lookUp('a')).status, 200)
  })

  t.test('an etcd with TLS, users and tokens that run out', async t => {
    const etcd = await Etcd.start(t, { 'cert-file': CERTIFICATE, 'key-file': KEY, 'auth-token-ttl': '1' })
    const base64 = (text: string): string => Buffer.from(text).toString('base64')
    for (const [name, password] of [
      ['root', 'of-all'],
      ['names', 'of-names'],
    ]) {
      await etcd.ask('auth/role/add', { name })
      await etcd.ask('auth/user/add', { name, password })
      await etcd.ask('auth/user/grant', { user: name, role: name })
    }
    const [key, range_end] = [base64('/fastsockets/named/'), base64('/fastsockets/named0')]
    await etcd.ask('auth/role/grant', { name: 'names', perm: { permType: 'READWRITE', key, range_end } })
    await etcd.ask('auth/enable', {})
    const passwordFile = join(temporaryFolder(t), 'password')
    const flags = ['--etcd-ca', CERTIFICATE, '--etcd-user', 'names', '--etcd-password-file', passwordFile]
    writeFileSync(passwordFile, 'wrong\n', { mode: 0o600 })
    const stranger = new Named(t, { args: [...onEtcd(etcd).args, ...flags] })
    t.strictSame(await stranger.spawn(), { code: 1, signal: null })
    t.notMatch(stranger.log + stranger.stderr, 'wrong')
    t.match(stranger.stderr, /etcd cannot be used: etcd refused: gRPC code \d+/)
    writeFileSync(passwordFile, 'of-names\n')
    const named = await Named.start(t, { args: [...onEtcd(etcd).args, ...flags] })
    const lease = await named.grant()
    t.equal((await named.register('a', lease)).status, 200)
    const watch = await new RawWatch(t, named).started()
    await delay(3000)
    t.equal((await named.register('b', lease)).status, 200, 'with a new token')
    await etcd.stop('SIGKILL')
    await etcd.up()
    await eventually('all to be well', async () => (await named.register('c', lease)).status === 200)
    await eventually('the changes', () => watch.changes.length === 2)
    t.strictSame(watch.changes, ['+b', '+c'])
    t.notMatch(named.log + named.stderr, 'of-names')
  })

  t.test('without etcd the daemon does not start, and says why', async t => {
    const named = new Named(t, { args: ['--store-kind', 'etcd', '--etcd-endpoints', 'http://127.0.0.1:1'] })
    t.strictSame(await named.spawn(), { code: 1, signal: null })
    t.match(named.stderr, 'etcd cannot be used: ECONNREFUSED')
  })
}
