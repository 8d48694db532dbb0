/** The memory store and the embedded one, and what only they promise. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { HISTORY_LENGTH_MAX } from '../../../nameservice/store/change-log.ts'
import { type Batch, type Journal, memoryJournal } from '../../../nameservice/store/journal.ts'
import { LeaseClock } from '../../../nameservice/store/lease-clock.ts'
import { LevelJournal } from '../../../nameservice/store/level-journal.ts'
import { LocalStore } from '../../../nameservice/store/local-store.ts'
import type { StoreObserver } from '../../../nameservice/store/store.ts'
import { eventually } from '../../support/until.ts'
import { changesAfter, entry, HISTORY, put, remove, testStore, yes } from './store-conformance.ts'

/** The daemon would not take so long a record; the store does. */
const RECORD_LENGTH = 512 * 1024

class Notes implements StoreObserver {
  readonly states: string[] = []
  quarantined = ''
  handleState(state: string): void {
    this.states.push(state)
  }
  handleCommit(): void {}
  handleExpired(): void {}
  handleQuarantine(reason: string): void {
    this.quarantined = reason
  }
}

function directory(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'named-store-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'store')
}

async function opened(
  t: Test,
  journal: Journal,
  options: Partial<ConstructorParameters<typeof LocalStore>[0]> = {},
) {
  const store = new LocalStore({ journal, observer: new Notes(), history: HISTORY, ...options })
  await store.open()
  t.teardown(() => store.close())
  return store
}

const directories = new WeakMap<object, string>()

async function openLevel(t: Test, path = directory(t), options = {}): Promise<LocalStore> {
  const store = await opened(t, new LevelJournal(path), options)
  directories.set(store, path)
  return store
}

testStore(t, 'memory', { open: t => opened(t, memoryJournal), ttlMinMs: 1000 })
testStore(t, 'embedded', {
  open: t => openLevel(t),
  reopen: (t, old) => openLevel(t, directories.get(old)),
  ttlMinMs: 1000,
})

t.test('a second daemon does not get the store', async t => {
  const store = await openLevel(t)
  const path = directories.get(store) as string
  const second = new LocalStore({ journal: new LevelJournal(path), observer: new Notes() })
  const error = await second.open().catch((error: Error) => error)
  t.match(error, { code: 'ERR_STORE_LOCKED', message: 'another daemon has the store open' })
  t.notMatch((error as Error).message, path)
})

t.test(
  'a damaged store is found out, put aside, and an empty one begins with an epoch of its own',
  async t => {
    const original = await openLevel(t)
    const path = directories.get(original) as string
    const { id } = await original.grant('uid:1', 60_000, yes)
    for (let i = 0; i < 40; i++) await put(original, `n/${i}`, id)
    const { epoch } = original.log
    await original.close()
    // Opened once more, LevelDB writes what was in its log into a table.
    await (await openLevel(t, path)).close()

    const file = (copy: string, pattern: RegExp) =>
      join(copy, readdirSync(copy).find(name => pattern.test(name)) as string)
    const damages: [what: string, damage: (copy: string) => void][] = [
      ['a table is cut short', copy => truncateSync(file(copy, /\.ldb$/), 1000)],
      ['a table is empty', copy => truncateSync(file(copy, /\.ldb$/), 0)],
      ['a table is missing', copy => rmSync(file(copy, /\.ldb$/))],
      ['a table is garbage', copy => writeFileSync(file(copy, /\.ldb$/), Buffer.alloc(5000, 7))],
      ['the index is missing', copy => rmSync(join(copy, 'CURRENT'))],
      ['the index names nothing', copy => writeFileSync(join(copy, 'CURRENT'), 'MANIFEST-999999\n')],
      ['the index is empty', copy => truncateSync(join(copy, 'CURRENT'), 0)],
      ['the manifest is garbage', copy => writeFileSync(file(copy, /^MANIFEST/), Buffer.alloc(500, 7))],
    ]
    for (const [what, damage] of damages) {
      const copy = directory(t)
      cpSync(path, copy, { recursive: true })
      damage(copy)
      const strict = new LocalStore({
        journal: new LevelJournal(copy),
        observer: new Notes(),
        onCorrupt: 'refuse',
      })
      await t.rejects(strict.open(), { code: 'ERR_STORE_CORRUPT', message: /^the store is damaged/ }, what)

      const observer = new Notes()
      const fresh = await openLevel(t, copy, { observer })
      t.match(observer.quarantined, /^the store is damaged/, what)
      t.equal(fresh.image.nameCount, 0)
      t.not(fresh.log.epoch, epoch, 'its revisions are distinct from those of the old one')
      await put(fresh, 'a', (await fresh.grant('uid:1', 60_000, yes)).id)
      t.ok(readdirSync(`${copy}.damaged`).length > 0, 'what was there is kept for a look')
    }
  },
)

t.test('the history on disk is limited by its size as that in memory is', async t => {
  const store = await openLevel(t, directory(t), { history: 10_000 })
  const path = directories.get(store) as string
  const { id } = await store.grant('uid:1', 600_000, yes)
  const record = JSON.stringify({ endpoint: 'x'.repeat(RECORD_LENGTH) })
  const start = store.log.head
  for (let i = 0; i < 1.5 * (HISTORY_LENGTH_MAX / RECORD_LENGTH); i++) await put(store, 'a', id, record)
  t.equal(changesAfter(store, start), undefined, 'what was first is forgotten')
  const { oldest, head } = store.log
  const kept = changesAfter(store, oldest)
  await store.close()

  const journal = new LevelJournal(path)
  const { changes } = await journal.open()
  await journal.close()
  const length = changes.reduce((sum, { entry }) => sum + (entry?.record.length ?? 0), 0)
  // What is written together with a change is what was known before it.
  t.ok(length < HISTORY_LENGTH_MAX + 2 * record.length, `${length} characters`)

  const again = await openLevel(t, path, { history: 10_000 })
  t.strictSame([again.log.oldest, again.log.head], [oldest, head])
  t.strictSame(changesAfter(again, oldest), kept)
})

t.test('a flipped bit anywhere in the data is found out or does no harm', async t => {
  const original = await openLevel(t)
  const path = directories.get(original) as string
  const { id } = await original.grant('uid:1', 60_000, yes)
  for (let i = 0; i < 40; i++) await put(original, `n/${i}`, id, `{"endpoint":"${i}"}`)
  const truth = original.image.list('', '', 100)
  await original.close()
  await (await openLevel(t, path)).close()

  const table = readdirSync(path).find(name => name.endsWith('.ldb')) as string
  const bytes = readFileSync(join(path, table))
  let found = 0
  for (let i = 0; i < 60; i++) {
    const copy = directory(t)
    cpSync(path, copy, { recursive: true })
    const flipped = Buffer.from(bytes)
    const at = Math.floor((i / 60) * bytes.length)
    flipped[at] = (flipped[at] as number) ^ 0x10
    writeFileSync(join(copy, table), flipped)
    const observer = new Notes()
    const store = await openLevel(t, copy, { observer })
    if (observer.quarantined !== '') found += 1
    else t.strictSame(store.image.list('', '', 100), truth, `byte ${at}`)
    await store.close()
  }
  t.ok(found > 30, `${found} of 60 were found out`)
})

t.test(
  'a journal that fails: changes are refused, look-ups go on, and all is well again by itself',
  async t => {
    const path = directory(t)
    const level = new LevelJournal(path)
    let isFull = false
    const fickle: Journal = {
      open: () => level.open(),
      quarantine: () => level.quarantine(),
      close: () => level.close(),
      // The worst case: what was refused is in the journal nevertheless.
      write: async (batch: Batch) => {
        await level.write(batch)
        if (isFull) throw new Error('No space left on device')
      },
      reopen: async () => {
        if (isFull) throw new Error('No space left on device')
        await level.reopen()
      },
    }
    const observer = new Notes()
    const store = await opened(t, fickle, { observer })
    const { id } = await store.grant('uid:1', 600_000, yes)
    for (const name of ['a', 'b']) await put(store, name, id)
    const start = store.log.head

    isFull = true
    const refused = await Promise.allSettled([
      put(store, 'c', id),
      remove(store, 'a'),
      store.grant('x', 1000, yes),
    ])
    for (const result of refused)
      t.match(result, { status: 'rejected', reason: { code: 'store-unavailable' } })
    t.equal(store.state, 'unavailable')
    await t.rejects(put(store, 'c', id), { code: 'store-unavailable' })
    t.ok(store.image.entry('a'), 'what was acknowledged is there')
    t.equal(store.image.entry('c'), undefined)
    t.match(await store.keepAlive(id), { id }, 'leases are kept alive meanwhile')

    isFull = false
    await eventually('the store to recover', () => store.state === 'ready')
    t.strictSame(observer.states, ['unavailable', 'ready'])
    await put(store, 'd', id)
    t.strictSame(changesAfter(store, start), ['+d'])
    const before = store.image.list('', '', 10)
    await store.close()

    const again = await openLevel(t, path)
    t.strictSame(again.image.list('', '', 10), before, 'nothing of what was refused came back')
    t.strictSame(changesAfter(again, start), ['+d'])
    t.equal(again.image.leaseCount, 1)
  },
)

t.test('while nothing can be changed leases end all the same', async t => {
  let isFull = false
  const fickle: Journal = {
    ...memoryJournal,
    write: async batch => {
      if (isFull) throw new Error('No space left on device')
      await memoryJournal.write(batch)
    },
    reopen: async () => {
      if (isFull) throw new Error('No space left on device')
    },
  }
  const store = await opened(t, fickle)
  const { id } = await store.grant('uid:1', 1000, yes)
  await put(store, 'a', id)
  isFull = true
  await t.rejects(put(store, 'b', id), { code: 'store-unavailable' })
  t.ok(store.image.entry('a'))
  // Longer than the clock, if it is not read, counts as running time.
  await delay(2500)
  t.equal(store.state, 'unavailable')
  t.equal(store.image.entry('a'), undefined)
})

t.test('leases run on a clock that only this process can stop', async t => {
  let monotonicMs = 1e9
  const clock = new LeaseClock(() => monotonicMs)
  const start = clock.nowMs()
  const pass = (ms: number) => {
    for (const end = monotonicMs + ms; monotonicMs < end; monotonicMs += 100) clock.nowMs()
  }
  pass(5000)
  t.equal(clock.nowMs() - start, 5000)
  monotonicMs += 3_600_000
  t.equal(clock.nowMs() - start, 5000, 'an hour in which this process did not run does not count')
  pass(1000)
  t.equal(clock.nowMs() - start, 6000)
})

t.test('a name whose lease is over is free at once, before the sweep', async t => {
  let monotonicMs = 0
  const clock = new LeaseClock(() => monotonicMs)
  const store = await opened(t, memoryJournal, { leaseClock: clock })
  const old = await store.grant('uid:1', 1000, yes)
  await put(store, 'a', old.id)
  const next = await store.grant('uid:2', 600_000, yes)
  monotonicMs += 999
  t.ok(store.image.entry('a'))
  monotonicMs += 1
  t.equal(store.image.entry('a'), undefined)
  t.strictSame(store.image.list('', '', 10), [])
  t.equal(await store.keepAlive(old.id), undefined, 'it is too late')
  await store.update('a', facts => {
    t.equal(facts.entry('a'), undefined, 'the judge sees that it is free')
    return entry('a', next.id)
  })
  await eventually('the sweep', () => store.image.leaseCount === 1)
  t.match(store.image.entry('a'), { lease: next.id }, 'the sweep leaves the successor alone')
})
