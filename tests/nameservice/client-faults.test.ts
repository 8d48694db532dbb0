/** Registrations of the client while something goes wrong: answers that come too late, or never. */
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { NameClient } from '../../nameservice/index.ts'
import { Named, RawWatch, temporaryFolder } from '../support/named.ts'
import { eventually } from '../support/until.ts'

/** A way to a daemon, on which some requests get lost. */
class Relay {
  isDeafTo: RegExp | undefined
  ignored = 0
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #path: string

  constructor(t: Test, { socketPath }: Named) {
    this.#path = join(temporaryFolder(t), 'relay')
    this.#server = createServer(near => {
      const far = connect(socketPath)
      for (const socket of [near, far]) this.#sockets.add(socket.on('error', () => {}))
      far.on('close', () => near.destroy()).pipe(near)
      near
        .on('close', () => far.destroy())
        .on('data', data => {
          if (this.isDeafTo?.test(data.toString('latin1')) === true) this.ignored += 1
          else far.write(data)
        })
    })
    t.teardown(() => {
      this.#server.close()
      for (const socket of this.#sockets) socket.destroy()
    })
  }

  async address(): Promise<string> {
    await once(this.#server.listen(this.#path), 'listening')
    return `unix:${this.#path}`
  }
}

t.test('a name that is closed while its lease is granted is not registered after all', async t => {
  const named = await Named.start(t)
  const watch = await new RawWatch(t, named).started()
  const client = named.client()
  const states: string[] = []
  named.signal('SIGSTOP')
  t.teardown(() => named.signal('SIGCONT'))
  const registration = client.register({ name: 'a', endpoint: 'e' }, { onState: state => states.push(state) })
  await delay(50)
  await registration.close()
  named.signal('SIGCONT')
  await named.register('last', await named.grant())
  await eventually('the last', () => watch.changes.includes('+last'))
  await eventually('the lease to be given back', async () => {
    const { json } = await named.ask('GET', '/v1/leases')
    return (json.leases as unknown as object[]).length === 1
  })
  t.strictSame(watch.changes, ['+last'])
  t.strictSame(states, ['closed'])
})

t.test('a registration that is refused after it was closed stays closed', async t => {
  const named = await Named.start(t)
  await named.register('held', await named.grant())
  const client = named.client()
  await client.register({ name: 'mine', endpoint: 'e' }).registered
  const states: string[] = []
  named.signal('SIGSTOP')
  t.teardown(() => named.signal('SIGCONT'))
  const registration = client.register(
    { name: 'held', endpoint: 'e' },
    { onState: state => states.push(state) },
  )
  await delay(50)
  await registration.close()
  named.signal('SIGCONT')
  await client.register({ name: 'next', endpoint: 'e' }).registered
  t.strictSame(states, ['closed'])
  t.strictSame((await named.names()).sort(), ['held', 'mine', 'next'])
})

t.test('of a client with many names each that is removed is lost, watched or not', async t => {
  const named = await Named.start(t)
  const client = named.client({ ttlMs: 1500 })
  const names = Array.from({ length: 100 }, (_, i) => `n/${i}`)
  const registrations = names.map(name => client.register({ name, endpoint: 'e' }))
  await Promise.all(registrations.map(({ registered }) => registered))
  const removed = registrations.filter((_, i) => i % 33 === 0)
  for (const { name } of removed) await named.ask('DELETE', `/v1/names/${encodeURIComponent(name)}`)
  await eventually('the news', () => removed.every(({ state }) => state === 'lost'))
  t.equal(registrations.filter(({ state }) => state === 'registered').length, names.length - removed.length)
})

t.test('a name that is gone without a reason is registered anew', async t => {
  const named = await Named.start(t)
  const relay = new Relay(t, named)
  const client = new NameClient({ address: await relay.address(), ttlMs: 6000 })
  t.teardown(() => client.close())
  const registration = client.register({ name: 'a', endpoint: 'e' })
  const { lease } = await registration.registered
  await eventually('the watch', async () => /watchers 1$/m.test((await named.ask('GET', '/metrics')).text))
  relay.isDeafTo = /keepalive/
  await named.ask('DELETE', '/v1/names/a')
  await eventually('the name', async () => (await named.lookUp('a')).status === 200)
  t.ok(relay.ignored > 0)
  await eventually('the state', () => registration.state === 'registered')
  t.equal(registration.entry?.lease, lease)
})
