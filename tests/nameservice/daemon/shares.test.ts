/** No owner can use up what the others need: each owner has a share, and a reserve is left to administrators. */
import { chmodSync } from 'node:fs'
import t, { type Test } from 'tap'
import { Child } from '../../support/child.ts'
import { Etcd, etcdAbsence } from '../../support/etcd.ts'
import { Named, type NamedOptions } from '../../support/named.ts'
import { noOtherUser } from '../../support/other-user.ts'
import type { Attempt, Outcome } from './greedy-child.ts'

const GREEDY_CHILD = new URL('./greedy-child.js', import.meta.url)
const cannot = noOtherUser(GREEDY_CHILD)
const FIRST_UID = 12_001

class User {
  readonly #child: Child

  static async start(t: Test, named: Named, uid: number): Promise<User> {
    chmodSync(named.folder, 0o755)
    const child = new Child(t, GREEDY_CHILD, [named.socketPath], { uid, gid: uid } as never)
    await child.receive()
    return new User(child)
  }

  private constructor(child: Child) {
    this.#child = child
  }

  take(what: Attempt['what'], count: number, prefix?: string): Promise<Outcome> {
    return this.#child.ask({ what, count, ...(prefix === undefined ? {} : { prefix }) })
  }
}

function users(t: Test, named: Named, count: number): Promise<User[]> {
  return Promise.all(Array.from({ length: count }, (_, i) => User.start(t, named, FIRST_UID + i)))
}

/** The same promises for each store. */
function testNames(t: Test, options: (t: Test) => Promise<NamedOptions>): void {
  t.test('names, also of many leases and all at once', async t => {
    const { args = [], ...more } = await options(t)
    const limits = [
      '--limits-names',
      '160',
      '--limits-names-per-owner',
      '40',
      '--limits-names-per-lease',
      '30',
    ]
    const named = await Named.start(t, { ...more, args: [...args, ...limits] })
    const [mallory, eve, trudy, oscar, alice] = (await users(t, named, 5)) as [User, User, User, User, User]
    await mallory.take('leases', 2)
    t.strictSame(await mallory.take('names', 200, 'mallory'), { ok: 40, 'limit-names': 160 })
    await alice.take('leases', 1)
    t.strictSame(await alice.take('names', 5, 'alice'), { ok: 5 }, 'others do not notice')
    // Many together get all but the reserve, a sixteenth.
    for (const user of [eve, trudy, oscar]) await user.take('leases', 2)
    t.strictSame(await eve.take('names', 60, 'eve'), { ok: 40, 'limit-names': 20 })
    t.strictSame(await trudy.take('names', 60, 'trudy'), { ok: 40, 'limit-names': 20 })
    t.strictSame(await oscar.take('names', 60, 'oscar'), { ok: 25, 'limit-total': 35 })
    const lease = await named.grant()
    const replies = await Promise.all(
      Array.from({ length: 12 }, (_, i) => named.register(`root/${i}`, lease)),
    )
    t.equal(replies.filter(({ status }) => status === 200).length, 10, 'root has the reserve')
    const refused = replies.find(({ status }) => status !== 200)
    t.match(refused?.json, {
      type: 'urn:fastsockets:problem:limit-total',
      detail: /^There may be 160 names\.$/,
    })
    t.match((await named.ask('GET', '/v1/names?limit=1')).status, 200)
  })

  t.test('bytes of records', async t => {
    const { args = [], ...more } = await options(t)
    const limits = ['--limits-records-bytes', '100000', '--limits-records-bytes-per-owner', '25000']
    const named = await Named.start(t, { ...more, args: [...args, ...limits] })
    const [mallory, alice] = (await users(t, named, 2)) as [User, User]
    await mallory.take('leases', 1)
    const taken = await mallory.take('bytes', 60, 'mallory')
    t.ok((taken.ok ?? 0) >= 10 && (taken.ok ?? 0) <= 12, JSON.stringify(taken))
    t.equal(taken['limit-bytes'], 60 - (taken.ok ?? 0))
    await alice.take('leases', 1)
    t.strictSame(await alice.take('bytes', 5, 'alice'), { ok: 5 }, 'others do not notice')
  })

  t.test('leases', async t => {
    const { args = [], ...more } = await options(t)
    const limits = ['--limits-leases', '32', '--limits-leases-per-owner', '16']
    const named = await Named.start(t, { ...more, args: [...args, ...limits] })
    const [mallory, eve] = (await users(t, named, 2)) as [User, User]
    t.strictSame(await mallory.take('leases', 100), { ok: 16, 'limit-leases': 84 })
    t.strictSame(await eve.take('leases', 20), { ok: 14, 'limit-total': 6 })
    t.equal((await named.ask('POST', '/v1/leases')).status, 201, 'root has the reserve')
  })
}

t.test('the embedded store', { skip: cannot }, async t => testNames(t, async () => ({})))
const absence = cannot || etcdAbsence()
t.test('etcd', { skip: absence ?? false }, async t =>
  testNames(t, async t => ({
    args: ['--store-kind', 'etcd', '--etcd-endpoints', (await Etcd.start(t)).endpoint],
  })),
)

t.test('watchers', { skip: cannot }, async t => {
  const named = await Named.start(t, {
    args: ['--limits-watchers', '32', '--limits-watchers-per-owner', '16'],
  })
  const [mallory, eve] = (await users(t, named, 2)) as [User, User]
  t.strictSame(await mallory.take('watchers', 60), { ok: 16, 'limit-watchers': 44 })
  t.strictSame(await eve.take('watchers', 20), { ok: 14, 'limit-total': 6 })
  t.equal((await named.ask('GET', '/v1/watch')).status, 200, 'root has the reserve')
})

t.test('connections, also of users who keep them all busy', { skip: cannot }, async t => {
  const named = await Named.start(t, {
    args: [
      '--limits-connections',
      '64',
      '--limits-connections-per-owner',
      '20',
      '--limits-request-ms',
      '60000',
    ],
  })
  const [mallory, eve, trudy, alice] = (await users(t, named, 4)) as [User, User, User, User]
  // Of those that come at once, some are idle when the next one comes, as nothing of them has been read.
  t.equal((await mallory.take('connections', 40)).ok, 20)
  t.strictSame(await mallory.take('connections', 1), { 'limit-connections': 1 })
  t.strictSame(await alice.take('leases', 1), { ok: 1 }, 'others do not notice')
  t.strictSame(await eve.take('connections', 20), { ok: 20 })
  await trudy.take('connections', 30)
  t.equal((await named.ask('GET', '/readyz')).status, 200, 'root has the reserve')
})

t.test(
  'an owner with too many connections loses its own that is idle for longest',
  { skip: cannot },
  async t => {
    const named = await Named.start(t, { args: ['--limits-connections-per-owner', '20'] })
    const [mallory] = (await users(t, named, 1)) as [User]
    t.strictSame(await mallory.take('watchers', 15), { ok: 15 })
    t.strictSame(await mallory.take('silent', 30), { ok: 30 })
    t.equal((await mallory.take('watchers', 10)).ok, 5)
    t.strictSame(await mallory.take('watchers', 1), { 'limit-connections': 1 })
  },
)
