/** What goes wrong with the store and the disk of the real daemon. */
import { spawnSync } from 'node:child_process'
import { closeSync, cpSync, mkdirSync, openSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Named, temporaryFolder } from '../../support/named.ts'
import { skipHere } from '../../support/skip.ts'
import { eventually } from '../../support/until.ts'

t.test('the disk is full: changes are refused, look-ups answered, and it mends itself', async t => {
  const folder = temporaryFolder(t)
  const store = join(folder, 'store')
  mkdirSync(store)
  const mount = (options: string) => spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', store])
  if (mount('size=2m').status !== 0) return skipHere(t, 'a small disk cannot be mounted here')
  t.teardown(() => spawnSync('umount', ['-l', store]))
  const named = await Named.start(t, { folder })
  const lease = await named.grant()
  const labels = { filler: 'x'.repeat(200) }
  let count = 0
  let refusal = await named.register('n/0', lease)
  while (refusal.status === 200 && count < 10_000) {
    count += 1
    refusal = await named.register(`n/${count}`, lease, { endpoint: 'e', labels })
  }
  t.equal(refusal.status, 503, `after ${count}`)
  t.match(refusal.json, { type: 'urn:fastsockets:problem:store-unavailable', retryAfterMs: Number })
  t.equal(refusal.headers['retry-after'], '1')
  t.equal((await named.lookUp('n/0')).status, 200)
  t.equal((await named.lookUp(`n/${count}`)).status, 404, 'what was refused is not there')
  t.equal((await named.ask('POST', `/v1/leases/${lease}/keepalive`)).status, 200)
  const ready = await named.ask('GET', '/readyz')
  t.equal(ready.status, 503)
  t.strictSame(ready.json, { status: 'unavailable', reasons: ['the store is unavailable'] })
  t.match((await named.ask('GET', '/metrics')).text, /^fastsockets_named_store_ready 0$/m)
  t.ok(
    named.messages().some(({ level, reason }) => level === 'error' && /No space left/.test(String(reason))),
  )
  t.notMatch(named.log, `${store}/0`)

  await named.kill()
  t.strictSame(await named.spawn(), { code: 1, signal: null }, 'a daemon that would start anew cannot')
  t.match(named.stderr, 'No space left on device')
  t.equal(mount('remount,size=64m').status, 0)
  await named.up()
  t.equal((await named.names()).length, count, 'and has harmed nothing')
  t.equal(mount('remount,size=2m').status, 0)
  let more = 0
  while ((await named.register(`m/${more}`, lease, { endpoint: 'e', labels })).status === 200) more += 1
  t.equal(mount('remount,size=64m').status, 0)
  await eventually('it to mend', async () => (await named.register('after', lease)).status === 200)
  t.equal((await named.ask('GET', '/readyz')).status, 200)
  await named.kill()
  await named.up()
  const names = await named.names()
  t.equal(names.length, count + more + 1, 'what was acknowledged before and after')
  t.ok(names.includes('after'))
})

t.test('a log that cannot be written, or that no program reads, stops nothing', async t => {
  const pipe = join(temporaryFolder(t), 'pipe')
  spawnSync('mkfifo', [pipe])
  for (const place of ['/dev/full', pipe]) {
    const logTo = openSync(place, 'r+')
    t.teardown(() => closeSync(logTo))
    const named = new Named(t, { args: ['--log-level', 'debug'] })
    const exited = named.spawn(logTo)
    const isUp = async (): Promise<boolean> =>
      (await named.lookUp('a').catch(() => undefined))?.status === 404
    await eventually('the daemon', isUp)
    // More than a pipe holds.
    for (let i = 0; i < 2000; i++) await named.lookUp('a')
    t.equal((await named.register('a', await named.grant())).status, 200)
    named.signal('SIGTERM')
    t.strictSame(await exited, { code: 0, signal: null })
  }
})

t.test('the store is damaged: it is put aside, and clients are back by themselves', async t => {
  const named = await Named.start(t)
  const client = named.client()
  const registration = client.register({ name: 'mine', endpoint: 'e' })
  await registration.registered
  await named.kill()
  damage(named.storePath)
  await named.up()
  await eventually('the client', async () => (await named.lookUp('mine')).status === 200)
  t.ok(named.messages().some(({ level, msg }) => level === 'error' && /was put aside/.test(msg)))
  t.ok(readdirSync(`${named.storePath}.damaged`).length > 0)
  t.match((await named.ask('GET', '/metrics')).text, /^fastsockets_named_store_quarantines_total 1$/m)

  await named.kill()
  damage(named.storePath)
  const strict = new Named(t, { folder: named.folder, args: ['--store-on-damage', 'refuse'] })
  t.strictSame(await strict.spawn(), { code: 1, signal: null })
  t.match(strict.stderr, 'the store is damaged')
  t.ok(readdirSync(named.storePath).length > 0, 'and is left as it is')
})

t.test('a backup is restored: clients take nothing for the present that was later', async t => {
  const named = await Named.start(t)
  const client = named.client({ ttlMs: 60_000 })
  const lease = await named.grant()
  await client.register({ name: 'before', endpoint: 'e' }).registered
  await named.end('SIGTERM')
  const backup = join(temporaryFolder(t), 'backup')
  cpSync(named.storePath, backup, { recursive: true })
  await named.up()
  const registration = client.register({ name: 'after', endpoint: 'e' })
  await registration.registered
  await named.register('lost', lease)
  t.match(await client.lookup('lost'), { status: 'found' })
  await eventually('the watch', () => client.peek('lost')?.stale === false)
  await named.end('SIGTERM')
  rmSync(named.storePath, { recursive: true })
  cpSync(backup, named.storePath, { recursive: true })
  await named.up()
  await eventually('the name', async () => (await named.lookUp('after')).status === 200)
  await eventually('the look-up', async () => {
    const { status, stale } = await client.lookup('lost')
    return status === 'absent' && !stale
  })
  await eventually('the watch', () => client.peek('lost')?.stale === false)
  t.equal(registration.state, 'registered')
})

t.test('a damaged store that is a volume of its own is put aside within it', async t => {
  const folder = temporaryFolder(t)
  const store = join(folder, 'store')
  mkdirSync(store)
  if (spawnSync('mount', ['-t', 'tmpfs', 'tmpfs', store]).status !== 0)
    return skipHere(t, 'a volume cannot be mounted here')
  t.teardown(() => spawnSync('umount', ['-l', store]))
  const named = await Named.start(t, { folder })
  for (const round of ['first', 'second']) {
    await named.register(round, await named.grant())
    await named.kill()
    damage(store)
    await named.up()
    t.strictSame(await named.names(), [])
    t.ok(readdirSync(join(store, 'damaged')).includes('CURRENT'))
  }
})

t.test('a second daemon does not get the store, nor the socket, and the first does not notice', async t => {
  const named = await Named.start(t)
  await named.register('a', await named.grant())
  const sameStore = new Named(t, {
    folder: named.folder,
    args: ['--socket-path', join(named.folder, 'other.sock')],
  })
  t.strictSame(await sameStore.spawn(), { code: 1, signal: null })
  t.match(sameStore.stderr, 'another daemon has the store open')
  const sameSocket = new Named(t, { folder: named.folder, args: ['--store-kind', 'memory'] })
  t.strictSame(await sameSocket.spawn(), { code: 1, signal: null })
  t.match(sameSocket.stderr, 'another daemon listens on the socket')
  t.equal((await named.lookUp('a')).status, 200)
})

function damage(store: string): void {
  const manifest = readdirSync(store).find(name => name.startsWith('MANIFEST')) as string
  writeFileSync(join(store, manifest), Buffer.alloc(1000, 7))
}
