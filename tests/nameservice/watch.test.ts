/** Watching the real daemon: no change is lost or delivered twice, whatever happens to connections and daemons. */
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { Named, RawWatch } from '../support/named.ts'
import { seededRandom } from '../support/random.ts'
import { eventually } from '../support/until.ts'

t.test('a watch is told every change of its names, in order, with what they now stand for', async t => {
  const named = await Named.start(t)
  const lease = await named.grant()
  await named.register('a/before', lease)
  const all = await new RawWatch(t, named).started()
  const some = await new RawWatch(t, named, '?prefix=a/&prefix=c&name=b').started()
  t.match(all.events[0], { event: 'hello', id: /^[0-9a-f]{12}-1$/, data: { revision: 1 } })
  await named.register('a/x', lease, { endpoint: 'e1' })
  await named.register('b', lease)
  await named.register('bb', lease)
  await named.register('a/x', lease, { endpoint: 'e2' })
  await named.ask('DELETE', '/v1/names/bb')
  await named.ask('DELETE', '/v1/names/b')
  await eventually('all of it', () => all.changes.length === 6 && some.changes.length === 4)
  t.strictSame(all.changes, ['+a/x', '+b', '+bb', '+a/x', '-bb', '-b'])
  t.strictSame(some.changes, ['+a/x', '+b', '+a/x', '-b'])
  t.match(all.events[4]?.data, { type: 'put', name: 'a/x', revision: 5, lease, record: { endpoint: 'e2' } })
  t.strictSame(all.events[6]?.data, { type: 'delete', name: 'b', revision: 7 })
  const revisions = all.events.slice(1).map(({ data }) => data.revision)
  t.strictSame(revisions, [2, 3, 4, 5, 6, 7])
})

t.test('a watch that waits for the answer to another request is refused, and takes no place', async t => {
  const named = await Named.start(t, { args: ['--limits-watchers', '2'] })
  const countOf = async () => {
    const { text } = await named.ask('GET', '/metrics')
    return Number(/^fastsockets_named_watchers (\d+)$/m.exec(text)?.[1])
  }
  for (let i = 0; i < 4; i++) {
    const socket = connect(named.socketPath)
    t.teardown(() => socket.destroy())
    socket.write('GET /v1/watch HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(2))
    const [head] = await once(socket.setEncoding('utf8'), 'data')
    t.match(head, /^HTTP\/1.1 200 .*event: hello/s, 'the first is a watch')
    t.equal(await countOf(), 1)
    socket.destroy()
    await eventually('its end', async () => (await countOf()) === 0)
  }
})

t.test('a client that comes back with the last id receives the rest, also from the next daemon', async t => {
  const named = await Named.start(t)
  const lease = await named.grant()
  const first = await new RawWatch(t, named).started()
  await named.register('a', lease)
  await eventually('it', () => first.changes.length === 1)
  first.close()
  await named.register('b', lease)
  const again = await new RawWatch(t, named, '', { 'last-event-id': first.lastId }).started()
  await eventually('the rest', () => again.changes.length === 1)
  t.strictSame(again.changes, ['+b'])
  t.match(again.events[0], { event: 'hello', id: first.lastId }, 'hello is where it begins')

  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    await named.end(signal)
    await named.up()
    await named.register(`after-${signal.toLowerCase()}`, lease)
    const later = await new RawWatch(t, named, `?after=${again.lastId}`).started()
    await eventually('the rest', () => later.changes.includes(`+after-${signal.toLowerCase()}`))
    t.equal(new Set(later.changes).size, later.changes.length)
  }
  const whole = await new RawWatch(t, named, '', { 'last-event-id': first.lastId }).started()
  await eventually('all', () => whole.changes.length === 3)
  t.strictSame(whole.changes, ['+b', '+after-sigterm', '+after-sigkill'])
})

t.test('a daemon that stops tells its watchers', async t => {
  const named = await Named.start(t)
  const lease = await named.grant()
  const watch = await new RawWatch(t, named).started()
  await named.register('last', lease)
  const exit = await named.end('SIGTERM')
  t.strictSame(exit, { code: 0, signal: null })
  await eventually('the end', () => watch.isEnded)
  t.strictSame(watch.changes, ['+last'])
  t.match(watch.events.at(-1), { event: 'goodbye', data: { type: 'urn:fastsockets:problem:stopping' } })
  await named.up()
  t.strictSame(await named.names(), ['last'], 'leases are kept')
})

t.test('a daemon that stops says that it lives, and is not ready', async t => {
  const named = await Named.start(t)
  const heard: string[] = []
  const probes = ['/healthz', '/readyz'].map((path, i) => {
    const socket = connect(named.socketPath)
    t.teardown(() => socket.destroy())
    socket.setEncoding('utf8').on('data', text => {
      heard[i] = (heard[i] ?? '') + text
    })
    socket.on('error', () => {})
    // What has begun to come in is waited for.
    socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n`)
    return socket
  })
  // It has had some turns to accept the probes and read what they said.
  for (let i = 0; i < 10; i++) await named.lookUp('a')
  const exited = named.end('SIGTERM')
  await eventually('it to stop', () => named.messages().some(({ msg }) => msg === 'stopping'))
  const answered = probes.map(probe => once(probe, 'close'))
  for (const probe of probes) probe.write('\r\n')
  t.strictSame(await exited, { code: 0, signal: null })
  // The end of a process may be heard of before its last words.
  await Promise.all(answered)
  t.match(heard[0], /^HTTP\/1.1 200 /)
  t.match(heard[1], /^HTTP\/1.1 503 .*"reasons":\["the daemon is stopping"\]/s)
})

t.test('a watcher that is too far behind is told so', async t => {
  const named = await Named.start(t, { args: ['--store-history', '20', '--limits-names-per-lease', '10'] })
  const lease = await named.grant()
  const { headers } = await named.lookUp('x')
  const start = String(headers['fastsockets-cursor'])
  for (let i = 0; i < 30; i++) await named.register('n', lease)
  const refused = await named.ask('GET', `/v1/watch?after=${start}`)
  t.equal(refused.status, 410)
  t.match(refused.json, { type: 'urn:fastsockets:problem:behind', oldest: /-10$/ })
  const oldest = await new RawWatch(t, named, `?after=${refused.json.oldest}`).started()
  await eventually('what is left', () => oldest.changes.length === 20)
  for (const after of ['000000000000-5', start.replace(/\d+$/, '999')]) {
    t.equal(
      (await named.ask('GET', `/v1/watch?after=${after}`)).status,
      410,
      'another history, or the future',
    )
  }
  t.equal((await named.ask('GET', '/v1/watch?after=x')).status, 400)
  t.equal((await named.ask('GET', '/v1/watch', { headers: { 'last-event-id': 'x' } })).status, 400)
})

t.test('one that does not read is not waited for, and is told when it reads again', async t => {
  const named = await Named.start(t, { args: ['--store-history', '100', '--limits-names-per-lease', '50'] })
  const lease = await named.grant()
  const { connect } = await import('node:net')
  const slow = connect(named.socketPath)
  t.teardown(() => slow.destroy())
  slow.write('GET /v1/watch HTTP/1.1\r\nhost: x\r\n\r\n')
  await eventually('the stream', () => slow.readableLength > 0)
  slow.pause()
  const labels = { filler: 'x'.repeat(250) }
  for (let i = 0; i < 1500; i++) await named.register(`n/${i % 10}`, lease, { endpoint: 'e', labels })
  const quick = await new RawWatch(t, named).started()
  await named.register('last', lease)
  await eventually('the other', () => quick.changes.length === 1)
  let text = ''
  slow.setEncoding('utf8').on('data', chunk => {
    text += chunk
  })
  slow.resume()
  await eventually('the news', () => text.includes('event: behind'))
  t.match(text, 'urn:fastsockets:problem:behind')
  t.match((await named.ask('GET', '/metrics')).text, /^fastsockets_named_watchers_behind_total 1$/m)
})

t.test('random changes, random disconnects and SIGKILLs: what was heard is what happened', async t => {
  const random = seededRandom(t)
  const named = await Named.start(t)
  const lease = await named.grant()
  const { headers } = await named.lookUp('x')
  const start = String(headers['fastsockets-cursor'])
  let watch = await new RawWatch(t, named, `?after=${start}`).started()
  const heard: string[] = []
  const happened: string[] = []
  let lastId = start
  const leave = (): void => {
    watch.close()
    heard.push(...watch.changes)
    lastId = watch.lastId || lastId
  }
  const alive = new Set<string>()
  for (let i = 0; i < 200; i++) {
    const name = `n/${random.within(0, 9)}`
    const isRemoval = alive.has(name) && random.chance(0.4)
    const { status } = isRemoval
      ? await named.ask('DELETE', `/v1/names/${name}`)
      : await named.register(name, lease)
    t.equal(status, 200)
    happened.push(`${isRemoval ? '-' : '+'}${name}`)
    if (isRemoval) alive.delete(name)
    else alive.add(name)
    if (random.chance(0.1)) {
      leave()
      if (random.chance(0.2)) {
        await named.kill()
        await named.up()
      }
      watch = await new RawWatch(t, named, '', { 'last-event-id': lastId }).started()
    }
  }
  await eventually('the last', () => heard.length + watch.changes.length >= happened.length)
  leave()
  t.strictSame(heard, happened)
})
