/** The etcd store against a real etcd, and what only it promises. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { formatCursor } from '../../../nameservice/store/change-log.ts'
import { EtcdGateway } from '../../../nameservice/store/etcd-gateway.ts'
import { EtcdKeys, leaseNumber } from '../../../nameservice/store/etcd-keys.ts'
import { EtcdStore } from '../../../nameservice/store/etcd-store.ts'
import { Etcd, etcdAbsence } from '../../support/etcd.ts'
import { eventually } from '../../support/until.ts'
import { changesAfter, HISTORY, put, recordOf, testStore, yes } from './store-conformance.ts'

const OBSERVER = { handleState() {}, handleCommit() {}, handleExpired() {}, handleQuarantine() {} }
const absence = etcdAbsence()

/** A way to etcd that can be blocked: then connections are there, and nothing moves on them. */
class Way {
  readonly endpoint: string
  readonly #sockets = new Set<Socket>()
  #isBlocked = false

  static async open(t: Test, endpoint: string): Promise<Way> {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new Way(t, server, new URL(endpoint))
  }

  private constructor(t: Test, server: Server, { hostname, port }: URL) {
    this.endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on('connection', near => {
      const far = connect(Number(port), hostname)
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.add(from.on('error', () => {}).on('close', () => to.destroy()))
        from.on('data', data => {
          if (!this.#isBlocked) to.write(data)
        })
      }
    })
    t.teardown(() => {
      server.close()
      for (const socket of this.#sockets) socket.destroy()
    })
  }

  block(): void {
    this.#isBlocked = true
  }
}

if (absence !== undefined) {
  t.comment(`SKIPPED: the etcd store: ${absence}`)
  t.test('the etcd store', { skip: absence }, async () => {})
} else await testEtcd(t)

async function testEtcd(t: Test): Promise<void> {
  const etcd = await Etcd.start(t)
  let truths = 0
  const prefixes = new WeakMap<object, string>()
  const open = async (t: Test, prefix = `/test/${++truths}`, ...endpoints: string[]): Promise<EtcdStore> => {
    const gateway = new EtcdGateway({ endpoints: endpoints.length === 0 ? [etcd.endpoint] : endpoints })
    const store = new EtcdStore({ gateway, prefix, observer: OBSERVER, history: HISTORY })
    prefixes.set(store, prefix)
    await store.open()
    t.teardown(() => store.close())
    return store
  }
  testStore(t, 'etcd', {
    open: t => open(t),
    reopen: (t, old) => open(t, prefixes.get(old)),
    join: (t, other) => open(t, prefixes.get(other)),
    ttlMinMs: 2000,
  })

  t.test('what others write under the prefix is not believed', async t => {
    const store = await open(t)
    const { id } = await store.grant('uid:1', 600_000, yes)
    const keys = new EtcdKeys(prefixes.get(store) as string)
    const gateway = new EtcdGateway({ endpoints: [etcd.endpoint] })
    t.teardown(() => gateway.close())
    const lease = leaseNumber(id)
    const record = (text: string): string => JSON.stringify(['uid:1', '', text])
    const records = ['', '{', '{}', '[]', 'null', `${recordOf('e')} `, recordOf('e').replace('{', '{\n\n')]
    for (const value of [
      '',
      '{',
      '[]',
      '[1,2,3]',
      '["uid:1","",{}]',
      'null',
      '"x"',
      ...records.map(record),
    ]) {
      await gateway.transact([], [{ put: keys.name('bad'), value, lease }])
      await gateway.transact([], [{ put: keys.lease('00000000000000aa'), value, lease }])
    }
    await gateway.transact([], [{ put: `${keys.prefix}n/No Name`, value: '["uid:1","","{}"]', lease }])
    await gateway.transact([], [{ put: `${keys.prefix}other`, value: 'x', lease: 0n }])
    await put(store, 'good', id)
    t.strictSame(
      store.image.list('', '', 10).map(({ name }) => name),
      ['good'],
    )
    t.equal(store.image.leaseCount, 1)
  })

  t.test(
    'etcd is stopped and comes back: stale answers meanwhile, then everything that was missed',
    async t => {
      const own = await Etcd.start(t)
      const store = await open(t, '/own', own.endpoint)
      const { id } = await store.grant('uid:1', 600_000, yes)
      await put(store, 'before', id)
      const start = store.log.head
      for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
        await own.stop(signal)
        await eventually('the store to notice', () => store.isStale)
        t.ok(store.image.entry('before'), 'look-ups are answered')
        await t.rejects(put(store, 'x', id), { code: 'store-unavailable' })
        await t.rejects(store.grant('uid:1', 1000, yes), { code: 'store-unavailable' })
        await own.up()
        // Another daemon is faster.
        const other = await open(t, '/own', own.endpoint)
        await put(other, `during-${signal.toLowerCase()}`, id)
        await eventually('the store to be back', () => !store.isStale)
        await eventually('what was missed', () => store.image.entry(`during-${signal.toLowerCase()}`))
      }
      await put(store, 'after', id)
      t.strictSame(changesAfter(store, start), ['+during-sigterm', '+during-sigkill', '+after'], 'each once')
    },
  )

  t.test(
    'etcd is set up anew: the copy is emptied, and no revision of the old history is believed',
    async t => {
      const own = await Etcd.start(t)
      const store = await open(t, '/own', own.endpoint)
      const { id } = await store.grant('uid:1', 600_000, yes)
      await put(store, 'old', id)
      const start = store.log.head
      await own.stop('SIGKILL')
      own.forget()
      await own.up()
      await eventually('the store to be back', () => !store.isStale && store.image.nameCount === 0)
      t.equal(store.image.leaseCount, 0)
      t.equal(changesAfter(store, start), undefined, 'a watcher is told that it is too far behind')
    },
  )

  t.test('etcd is restored from a backup: what was changed since then is not believed any more', async t => {
    const own = await Etcd.start(t)
    const store = await open(t, '/test', own.endpoint)
    const { id } = await store.grant('uid:1', 600_000, yes)
    await put(store, 'a', id)
    await own.stop('SIGTERM')
    own.save()
    await own.up()
    await eventually('it to be back', () => store.state === 'ready')
    for (const name of ['b', 'c', 'd', 'e']) await put(store, name, id)
    const { epoch, head } = store.log
    await own.stop('SIGTERM')
    await eventually('it to notice', () => store.state === 'unavailable')
    own.restore()
    await own.up()
    await eventually('it to be back', () => store.state === 'ready')
    t.strictSame(
      store.image.list('', '', 10).map(({ name }) => name),
      ['a'],
    )
    t.not(store.log.epoch, epoch)
    t.equal(changesAfter(store, head), undefined)
    await put(store, 'f', id)
    const other = await open(t, '/test', own.endpoint)
    t.equal(other.log.epoch, store.log.epoch)
  })

  t.test('etcd compacts its history: a store that opens then knows where it begins', async t => {
    const own = await Etcd.start(t)
    const store = await open(t, '/own', own.endpoint)
    const { id } = await store.grant('uid:1', 600_000, yes)
    const start = store.log.head
    for (const name of ['a', 'b', 'c']) await put(store, name, id)
    const middle = store.log.head
    await own.ask('kv/compaction', { revision: String(store.log.revision) })
    await put(store, 'd', id)
    const late = await open(t, '/own', own.endpoint)
    t.equal(changesAfter(late, start), undefined)
    t.strictSame(changesAfter(late, middle), ['+d'])
    t.strictSame(
      late.image.list('', '', 10).map(({ name }) => name),
      ['a', 'b', 'c', 'd'],
    )
    t.strictSame(changesAfter(store, start), ['+a', '+b', '+c', '+d'], 'a watcher has missed nothing')
  })

  t.test('a history of many long changes is heard in time, as much of it as is kept', async t => {
    const store = await open(t)
    const { id } = await store.grant('uid:1', 600_000, yes)
    const prefix = prefixes.get(store) as string
    const keys = new EtcdKeys(prefix)
    const gateway = new EtcdGateway({ endpoints: [etcd.endpoint] })
    t.teardown(() => gateway.close())
    const record = recordOf('e').replace('{}', `{"long":"${'x'.repeat(64 * 1024)}"}`)
    // 40 MB, in as few questions as etcd takes.
    const puts = Array.from({ length: 20 }, (_, i) =>
      keys.putEntry({ name: `n/${i}`, lease: id, owner: 'uid:1', key: '', record }),
    )
    for (let i = 0; i < 30; i++) await gateway.transact([], puts)
    await put(store, 'last', id)
    const late = await open(t, prefix)
    t.equal(late.image.nameCount, 21)
    t.strictSame(changesAfter(late, late.log.oldest)?.at(-1), '+last')
    t.equal(changesAfter(late, formatCursor({ epoch: late.log.epoch, revision: 1, part: 0 })), undefined)
  })

  t.test('a watch does not stay with a member that no question is asked any more', async t => {
    const way = await Way.open(t, etcd.endpoint)
    const gateway = new EtcdGateway({ endpoints: [way.endpoint, etcd.endpoint] })
    t.teardown(() => gateway.close())
    const prefix = `/test/${++truths}`
    await gateway.transact([], [{ put: prefix, value: 'x', lease: 0n }])
    let heard = 0
    let ends = 0
    const end = gateway.watch(prefix, 1, {
      handleChanges: changes => {
        heard += changes.length
      },
      handleCompacted() {},
      handleEnd: () => {
        ends += 1
      },
    })
    t.teardown(end)
    await eventually('the change', () => heard > 0)
    way.block()
    t.match(await Promise.all([gateway.get(prefix), gateway.get(prefix)]), [{ value: 'x' }, { value: 'x' }])
    t.equal(ends, 1)
  })

  t.test('a member hangs: everything moves on to the next, the watch too', async t => {
    const [first, second] = [await Way.open(t, etcd.endpoint), await Way.open(t, etcd.endpoint)]
    const store = await open(t, `/test/${++truths}`, first.endpoint, second.endpoint)
    const start = store.log.head
    const other = await open(t, prefixes.get(store))
    const { id } = await other.grant('uid:1', 600_000, yes)
    await put(other, 'a', id)
    await eventually('the change', () => store.image.entry('a') !== undefined)
    first.block()
    await put(other, 'b', id)
    await eventually('the next', () => store.image.entry('b') !== undefined && !store.isStale)
    t.strictSame(changesAfter(store, start), ['+a', '+b'])
    await put(store, 'c', id)
    t.equal((await store.keepAlive(id))?.id, id)
  })

  t.test('an etcd that is not there is said so at once', async t => {
    await t.rejects(open(t, '/x', 'http://127.0.0.1:1'), { code: 'ERR_STORE_UNAVAILABLE' })
  })
}
