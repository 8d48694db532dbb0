/** The hub by itself: what cannot be waited for with a real daemon. */

import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { SETTINGS_SCHEMA } from '../../../nameservice/daemon/settings-schema.ts'
import { WatchFilter } from '../../../nameservice/daemon/watch-filter.ts'
import { WatchHub } from '../../../nameservice/daemon/watch-hub.ts'
import { ChangeLog, parseCursor } from '../../../nameservice/store/change-log.ts'
import { RawWatch, temporaryFolder } from '../../support/named.ts'
import { eventually } from '../../support/until.ts'

const LIMITS = Object.fromEntries(
  Object.entries(SETTINGS_SCHEMA.properties.limits.properties).map(([name, schema]) => [
    name,
    schema.default,
  ]),
) as ConstructorParameters<typeof WatchHub>[1]

async function serve(t: Test, log: ChangeLog, bookmarkMs: number) {
  const hub = new WatchHub(log, LIMITS, { handleEvents() {}, handleBehind() {} }, bookmarkMs)
  const socketPath = join(temporaryFolder(t), 's')
  const server = createServer((asked, response) => {
    const query = new URL(`http://x${asked.url}`).searchParams
    const after = parseCursor(query.get('after') ?? '')
    hub.open('uid:1', new WatchFilter(query.getAll('prefix'), []), after, response)
  }).listen(socketPath)
  await once(server, 'listening')
  t.teardown(() => {
    hub.close()
    server.close()
    server.closeAllConnections()
  })
  return { hub, socketPath }
}

const change = (revision: number, name: string, part = 0) => ({ revision, part, name, entry: undefined })

t.test('changes of one revision can be resumed in the middle', async t => {
  const log = new ChangeLog(10)
  log.reset('0123456789ab', 5, 0)
  log.append(6, [change(6, 'a')])
  log.append(9, [change(9, 'b', 1), change(9, 'c', 2), change(9, 'd')])
  log.append(11, [])
  log.append(12, [change(12, 'e')])
  const { socketPath } = await serve(t, log, 1e6)
  const after: [cursor: string, rest: string[]][] = [
    ['5', ['-a', '-b', '-c', '-d', '-e']],
    ['6', ['-b', '-c', '-d', '-e']],
    ['8', ['-b', '-c', '-d', '-e']],
    ['9.1', ['-c', '-d', '-e']],
    ['9.2', ['-d', '-e']],
    ['9', ['-e']],
    ['10', ['-e']],
    ['11', ['-e']],
    ['12', []],
  ]
  for (const [cursor, rest] of after) {
    const watch = await new RawWatch(t, { socketPath }, `?after=0123456789ab-${cursor}`).started()
    await eventually(cursor, () => watch.changes.length === rest.length)
    t.strictSame(watch.changes, rest, cursor)
  }
  const ids = await new RawWatch(t, { socketPath }, '?after=0123456789ab-5').started()
  await eventually('all', () => ids.changes.length === 5)
  t.strictSame(
    ids.events.slice(1).map(({ id }) => id),
    ['6', '9.1', '9.2', '9', '12'].map(id => `0123456789ab-${id}`),
  )
})

t.test('a watcher of whose names none changes is told how far it has come', async t => {
  const log = new ChangeLog(100)
  log.reset('0123456789ab', 0, 0)
  const { socketPath } = await serve(t, log, 20)
  const watch = await new RawWatch(t, { socketPath }, '?prefix=quiet/').started()
  for (let revision = 1; revision <= 50; revision++) log.append(revision, [change(revision, 'loud')])
  await eventually('a bookmark', () => watch.events.some(({ id }) => id === '0123456789ab-50'))
  t.strictSame(watch.changes, [])
  watch.close()
  const again = await new RawWatch(t, { socketPath }, `?prefix=quiet/&after=${watch.lastId}`).started()
  t.equal(again.status, 200, 'so it is not too far behind when it comes back')
})

t.test('every watcher learns of lost history', async t => {
  const log = new ChangeLog(10)
  log.reset('0123456789ab', 0, 0)
  const { hub, socketPath } = await serve(t, log, 1e6)
  const watches = [
    await new RawWatch(t, { socketPath }).started(),
    await new RawWatch(t, { socketPath }).started(),
  ]
  log.reset('ba9876543210', 3, 3)
  for (const watch of watches) {
    await eventually('the end', () => watch.isEnded)
    t.match(watch.events.at(-1), { event: 'behind', data: { oldest: 'ba9876543210-3' } })
  }
  t.equal(hub.count, 0)
})

t.test('a history of long records is a short one', async t => {
  const log = new ChangeLog(1000)
  log.reset('0123456789ab', 0, 0)
  const record = 'x'.repeat(1024 * 1024)
  for (let revision = 1; revision <= 100; revision++) {
    const entry = { name: 'n', lease: '', owner: '', key: '', record, revision }
    log.append(revision, [{ revision, part: 0, name: 'n', entry }])
  }
  t.equal(log.end - log.first, 31, '32 MiB, of which the names take a little')
  t.equal(log.oldest, '0123456789ab-69')
  t.equal(log.at(log.first).revision, 70)
  t.equal(log.indexAfter({ epoch: '0123456789ab', revision: 69, part: 0 }), log.first)
  t.equal(log.indexAfter({ epoch: '0123456789ab', revision: 68, part: 0 }), undefined)
})

t.test('a thousand watchers and a flood of changes do not hold up the event loop', async t => {
  const log = new ChangeLog(1000)
  log.reset('0123456789ab', 0, 0)
  const { hub, socketPath } = await serve(t, log, 1e6)
  let eventCount = 0
  for (let i = 0; i < 300; i++) {
    const call = request({ socketPath, path: '/', agent: false }, response => {
      response.setEncoding('utf8').on('data', (text: string) => {
        eventCount += text.split('event: change').length - 1
      })
    })
    t.teardown(() => call.destroy())
    call.end()
  }
  await eventually('all of them', () => hub.count === 300)
  for (let revision = 1; revision <= 500; revision++) log.append(revision, [change(revision, 'n')])
  await eventually('every event', () => eventCount === 300 * 500)
  t.equal(eventCount, 300 * 500)
})
