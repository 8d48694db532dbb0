/** One suite for every store: each promise of nameservice/store/store.ts. */
import type { Test } from 'tap'
import { Refusal } from '../../../nameservice/problem.ts'
import { formatCursor, parseCursor } from '../../../nameservice/store/change-log.ts'
import type { Store } from '../../../nameservice/store/store.ts'
import type { Facts, NewEntry, StoredChange } from '../../../nameservice/store/stored.ts'
import { eventually } from '../../support/until.ts'

export interface StoreUnderTest {
  /** A store with a history of `HISTORY` changes, opened, of its own truth; closed when the test ends. */
  open(t: Test): Promise<Store>
  /** A new store on what the old one, which is closed, has left; undefined if nothing is ever left. */
  readonly reopen?: (t: Test, old: Store) => Promise<Store>
  /** A second store on the same truth, at the same time. */
  readonly join?: (t: Test, other: Store) => Promise<Store>
  /** Shortest TTL that it grants. */
  readonly ttlMinMs: number
}

export const HISTORY = 50
const LONG_MS = 600_000

export const yes = (): void => {}
export const no = (): never => {
  throw new Refusal('name-held', 'no')
}

/** A whole record, as the daemon writes it. */
export const recordOf = (endpoint: string): string =>
  JSON.stringify({
    kind: 'endpoint',
    endpoint,
    host: '',
    pid: 1,
    uid: 1,
    drivers: [],
    tag: '0000000000000000',
    version: 1,
    labels: {},
  })

export function entry(name: string, lease: string, record = recordOf('e')): NewEntry {
  return { name, lease, owner: 'uid:1', key: '', record }
}

export function put(store: Store, name: string, lease: string, record?: string): Promise<StoredChange> {
  return store.update(name, () => entry(name, lease, record))
}

export function remove(store: Store, name: string): Promise<StoredChange> {
  return store.update(name, () => undefined)
}

/** The changes for a watcher after `cursor`; undefined if it is too far behind. */
export function changesAfter(store: Store, cursor: string): string[] | undefined {
  const at = parseCursor(cursor)
  const from = at === undefined ? undefined : store.log.indexAfter(at)
  if (from === undefined) return undefined
  const told: string[] = []
  for (let i = from; i < store.log.end; i++) {
    const change = store.log.at(i)
    told.push(`${change.entry === undefined ? '-' : '+'}${change.name}`)
  }
  return told
}

const names = (store: Store, prefix = '', after = '', limit = 1000): string[] =>
  store.image.list(prefix, after, limit).map(({ name }) => name)

export function testStore(t: Test, name: string, under: StoreUnderTest): void {
  t.test(`${name}: leases`, async t => {
    const store = await under.open(t)
    const [a, b] = [await store.grant('uid:1', LONG_MS, yes), await store.grant('uid:1', LONG_MS, yes)]
    t.not(a.id, b.id)
    t.match(a, { id: /^[0-9a-f]{16}$/, owner: 'uid:1', ttlMs: LONG_MS })
    t.match(store.image.lease(a.id), a)
    t.equal(store.image.leaseCountOf('uid:1'), 2)
    t.equal(store.image.leaseCountOf('uid:2'), 0)
    t.strictSame(
      store.image
        .leases('uid:1')
        .map(({ id }) => id)
        .sort(),
      [a.id, b.id].sort(),
    )
    t.match(await store.keepAlive(a.id), a)
    t.equal(await store.keepAlive('00000000000000ff'), undefined, 'there is no such lease')
    t.equal(await store.revoke(a.id), true)
    t.equal(await store.revoke(a.id), false, 'it is gone')
    t.equal(await store.keepAlive(a.id), undefined)
    t.equal(store.image.leaseCount, 1)
    await t.rejects(store.grant('uid:1', LONG_MS, no), { code: 'name-held' }, 'the judge refuses')
    t.equal(store.image.leaseCount, 1, 'and nothing was granted')
  })

  t.test(`${name}: names are put, replaced, listed in order and removed`, async t => {
    const store = await under.open(t)
    const { id } = await store.grant('uid:1', LONG_MS, yes)
    for (const name of ['b/2', 'a', 'b/1', 'b', 'inet:tcp:10.0.0.7:80', 'b/3', 'c'])
      await put(store, name, id)
    t.strictSame(names(store), ['a', 'b', 'b/1', 'b/2', 'b/3', 'c', 'inet:tcp:10.0.0.7:80'])
    t.strictSame(names(store, 'b/'), ['b/1', 'b/2', 'b/3'])
    t.strictSame(names(store, 'b/', 'b/1', 1), ['b/2'])
    t.strictSame(names(store, 'b/', 'a'), ['b/1', 'b/2', 'b/3'], 'after a name before the prefix')
    t.strictSame(names(store, 'b/', 'b/3'), [])
    t.strictSame(names(store, 'x'), [])
    t.equal(store.image.nameCount, 7)
    t.equal(store.image.nameCountOf(id), 7)

    const before = store.image.entry('a')?.revision as number
    const change = await put(store, 'a', id, recordOf('other'))
    t.ok(change.revision > before, 'a change has a later revision')
    t.match(store.image.entry('a'), { name: 'a', lease: id, owner: 'uid:1', revision: change.revision })
    t.equal(store.image.entry('a')?.record, recordOf('other'), 'the record is kept to the letter')
    t.equal(store.image.nameCountOf(id), 7)

    const gone = await remove(store, 'a')
    t.ok(gone.revision > change.revision)
    t.equal(store.image.entry('a'), undefined)
    t.equal(store.image.nameCountOf(id), 6)
  })

  t.test(`${name}: a name moves to another lease`, async t => {
    const store = await under.open(t)
    const [old, next] = [await store.grant('uid:1', LONG_MS, yes), await store.grant('uid:1', LONG_MS, yes)]
    await put(store, 'a', old.id)
    await put(store, 'a', next.id)
    t.equal(store.image.nameCountOf(old.id), 0)
    t.equal(store.image.nameCountOf(next.id), 1)
    await store.revoke(old.id)
    t.match(store.image.entry('a'), { lease: next.id }, 'the end of the old lease does not touch it')
  })

  t.test(`${name}: a judge sees every earlier change, so only one of many wins`, async t => {
    const store = await under.open(t)
    const { id } = await store.grant('uid:1', LONG_MS, yes)
    const claim = (facts: Facts): NewEntry => (facts.entry('one') === undefined ? entry('one', id) : no())
    const claims = await Promise.allSettled(Array.from({ length: 20 }, () => store.update('one', claim)))
    t.equal(claims.filter(({ status }) => status === 'fulfilled').length, 1)
    const counted = (name: string) => (facts: Facts) =>
      facts.nameCountOf(id) < 6 && facts.nameCount < 6 ? entry(name, id) : no()
    for (let i = 0; i < 10; i++) {
      const call = store.update(`n/${i}`, counted(`n/${i}`))
      if (i < 5) await call
      else await t.rejects(call, { code: 'name-held' })
    }
    t.equal(store.image.nameCountOf(id), 6)
  })

  t.test(`${name}: changes are logged once each, in order`, async t => {
    const store = await under.open(t)
    const { id } = await store.grant('uid:1', LONG_MS, yes)
    const start = store.log.head
    t.strictSame(changesAfter(store, start), [])
    await put(store, 'a', id)
    const middle = store.log.head
    await Promise.all([put(store, 'b', id), put(store, 'c', id)])
    await remove(store, 'b')
    t.strictSame(changesAfter(store, start)?.slice(0, 1), ['+a'])
    t.strictSame(changesAfter(store, middle)?.slice().sort(), ['+b', '+c', '-b'])
    t.equal(changesAfter(store, middle)?.at(-1), '-b')
    const { epoch, revision } = store.log
    t.equal(
      changesAfter(store, formatCursor({ epoch, revision: revision + 1, part: 0 })),
      undefined,
      'the future',
    )
    t.equal(changesAfter(store, formatCursor({ epoch: '000000000000', revision: 0, part: 0 })), undefined)
    t.equal(changesAfter(store, 'nonsense'), undefined)
  })

  t.test(`${name}: the end of a lease takes its names, and each is told`, async t => {
    const store = await under.open(t)
    const { id } = await store.grant('uid:1', LONG_MS, yes)
    const other = await store.grant('uid:1', LONG_MS, yes)
    for (const name of ['x', 'y', 'z']) await put(store, name, id)
    await put(store, 'stays', other.id)
    const start = store.log.head
    await store.revoke(id)
    t.strictSame(names(store), ['stays'])
    t.strictSame(changesAfter(store, start)?.slice().sort(), ['-x', '-y', '-z'])
    const told = store.log.at(store.log.end - 3)
    const cursor = formatCursor({ epoch: store.log.epoch, ...told })
    t.equal(changesAfter(store, cursor)?.length, 2, 'a watcher who heard the first hears the other two')
    t.equal(changesAfter(store, store.log.head)?.length, 0)
  })

  t.test(
    `${name}: what is registered under a lease that has ended is refused by the judge's facts`,
    async t => {
      const store = await under.open(t)
      const { id } = await store.grant('uid:1', LONG_MS, yes)
      await store.revoke(id)
      const judge = (facts: Facts) => (facts.lease(id) === undefined ? no() : entry('a', id))
      await t.rejects(store.update('a', judge), { code: 'name-held' })
    },
  )

  t.test(`${name}: a lease lives while it is kept alive, and not much longer`, async t => {
    const store = await under.open(t)
    const kept = await store.grant('uid:1', under.ttlMinMs, yes)
    const left = await store.grant('uid:1', under.ttlMinMs, yes)
    await put(store, 'kept', kept.id)
    await put(store, 'left', left.id)
    const start = store.log.head
    const keeper = setInterval(() => store.keepAlive(kept.id), 100)
    t.teardown(() => clearInterval(keeper))
    await eventually('the lease to end', () => store.image.entry('left') === undefined)
    await eventually('that to be told', () => changesAfter(store, start)?.includes('-left'))
    t.equal(await store.keepAlive(left.id), undefined)
    t.ok(store.image.entry('kept'))
    t.strictSame(changesAfter(store, start), ['-left'])
    clearInterval(keeper)
    await eventually('the other to end', () => store.image.leaseCount === 0)
    t.strictSame(changesAfter(store, start), ['-left', '-kept'])
  })

  t.test(`${name}: a watcher that is too far behind is told so`, async t => {
    const store = await under.open(t)
    const { id } = await store.grant('uid:1', LONG_MS, yes)
    const start = store.log.head
    for (let i = 0; i < HISTORY + 20; i++) await put(store, `n/${i % 7}`, id)
    t.equal(changesAfter(store, start), undefined)
    t.equal(changesAfter(store, store.log.oldest)?.length, HISTORY)
  })

  if (under.reopen !== undefined) testReopened(t, name, under, under.reopen)
  if (under.join !== undefined) testShared(t, name, under, under.join)
}

function testReopened(
  t: Test,
  name: string,
  under: StoreUnderTest,
  reopen: NonNullable<StoreUnderTest['reopen']>,
): void {
  t.test(`${name}: after it was closed and opened everything is as it was, the history included`, async t => {
    const store = await under.open(t)
    const start = store.log.head
    const kept = await store.grant('uid:1', LONG_MS, yes)
    const ended = await store.grant('uid:2', LONG_MS, yes)
    for (const name of ['a', 'b', 'c']) await put(store, name, kept.id, recordOf(`${name} \u0001 ☃`))
    await put(store, 'd', ended.id)
    await remove(store, 'b')
    await store.revoke(ended.id)
    const told = changesAfter(store, start)
    const before = store.image.list('', '', 100)
    const { epoch, revision } = store.log
    await store.close()

    const again = await reopen(t, store)
    t.strictSame(again.image.list('', '', 100), before)
    t.strictSame(
      again.image.leases().map(({ id }) => id),
      [kept.id],
    )
    t.equal(again.log.epoch, epoch)
    t.ok(again.log.revision >= revision)
    t.strictSame(changesAfter(again, start), told)
    t.match(await again.keepAlive(kept.id), { id: kept.id, ttlMs: kept.ttlMs, owner: 'uid:1' })
    const change = await put(again, 'e', kept.id)
    t.ok(change.revision > revision, 'revisions go on')
    t.strictSame(changesAfter(again, start), [...(told ?? []), '+e'])
  })

  t.test(`${name}: a history longer than it may be is cut off, also over restarts`, async t => {
    const store = await under.open(t)
    const { id } = await store.grant('uid:1', LONG_MS, yes)
    const start = store.log.head
    for (let i = 0; i < HISTORY + 10; i++) await put(store, 'n', id)
    await store.close()
    const again = await reopen(t, store)
    t.equal(changesAfter(again, start), undefined)
    await put(again, 'n', id)
    await again.close()
    const third = await reopen(t, again)
    t.equal(third.image.nameCount, 1)
    t.ok((changesAfter(third, third.log.oldest)?.length ?? 0) > 0)
  })
}

function testShared(
  t: Test,
  name: string,
  under: StoreUnderTest,
  join: NonNullable<StoreUnderTest['join']>,
): void {
  t.test(`${name}: two daemons share one truth`, async t => {
    const one = await under.open(t)
    const two = await join(t, one)
    const start = one.log.head
    const lease = await one.grant('uid:1', LONG_MS, yes)
    await put(one, 'a', lease.id)
    await two.fetchLease(lease.id)
    t.ok(two.image.lease(lease.id), 'the other knows the lease as soon as it is asked for')
    await two.fetchLease('00000000000000aa')
    await eventually('the other to hear', () => two.image.entry('a'))
    t.equal(two.log.epoch, one.log.epoch)
    t.strictSame(two.image.entry('a'), one.image.entry('a'))
    t.match(await two.keepAlive(lease.id), { id: lease.id })
    const claim = (facts: Facts) => (facts.entry('b') === undefined ? entry('b', lease.id) : no())
    const claims = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) => (i % 2 ? one : two).update('b', claim)),
    )
    t.equal(claims.filter(({ status }) => status === 'fulfilled').length, 1, 'one wins')
    await two.revoke(lease.id)
    await eventually('the first to hear', () => one.image.nameCount === 0)
    const told = ['+a', '+b', '-a', '-b']
    await eventually('both logs', () => changesAfter(one, start)?.length === 4)
    t.strictSame(changesAfter(one, start), told)
    t.strictSame(changesAfter(two, start), told)
  })
}
