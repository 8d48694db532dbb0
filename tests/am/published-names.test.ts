/** Endpoints that find each other by names of their own choice, by way of the real daemon. */
import t, { type Test } from 'tap'
import { type Endpoint, type EndpointOptions, openEndpoint, type ReceivedMessage } from '../../am/index.ts'
import { Publication } from '../../am/published-names.ts'
import { newEndpointName } from '../../am/rendezvous/endpoint-name.ts'
import { Child, plainEnvironment } from '../support/child.ts'
import { errorOf } from '../support/endpoints.ts'
import { Named } from '../support/named.ts'
import { eventually, withWatchdog } from '../support/until.ts'
import { ECHO } from './endpoint-questions.ts'

const fixture = new URL('./published-endpoint-child.js', import.meta.url)

// One client for the whole thread: one place at which daemons come and go.
const named = new Named(t)
process.env.FASTSOCKETS_NAMES = named.address
const CONTESTS_MAX = 5
t.before(() => named.up())

async function open(t: Test, options: EndpointOptions = {}): Promise<Endpoint> {
  const endpoint = await openEndpoint(options)
  t.teardown(() => endpoint.close())
  return endpoint
}

function start(t: Test, ...args: string[]): Child {
  return new Child(t, fixture, args, {
    env: { ...plainEnvironment(), FASTSOCKETS_NAMES: named.address },
  })
}

async function echo(endpoint: Endpoint, destination: number): Promise<number> {
  const reply: ReceivedMessage = await withWatchdog(
    'the echo',
    endpoint.call(destination, ECHO, undefined, [7]),
  )
  return reply.word(0)
}

t.test('an endpoint is mapped by the name that it has published, and shown the tag', async t => {
  const child = start(t, 'services/echo', '1234')
  const { name } = await child.receive<{ name: string }>()
  const own = await open(t)
  await own.map(3, 'services/echo')
  t.equal(await echo(own, 3), 7)
  await own.map(4, 'services/echo', 1234n)
  t.equal(await echo(own, 4), 7)
  await own.map(5, 'services/echo', 99n)
  t.match(await errorOf(own.call(5, ECHO)), { code: 'ERR_AM_UNDELIVERABLE', reason: 'BAD_TAG' })
  await own.map(6, name, 1234n)
  t.equal(await echo(own, 6), 7)

  const { json } = await named.lookUp('services/echo')
  t.match(json, {
    name: 'services/echo',
    record: {
      kind: 'endpoint',
      endpoint: name,
      pid: child.pid,
      uid: process.getuid?.(),
      tag: '00000000000004d2',
      host: name.split('-')[1],
    },
  })
  t.match(json.record?.drivers, [{ name: 'shm' }])
})

t.test('a name is free again when its endpoint is closed', async t => {
  const child = start(t, 'short-lived')
  await child.receive()
  t.equal(await child.ask({}), 'closed')
  t.equal((await named.lookUp('short-lived')).status, 404)
  const own = await open(t)
  const returned: (string | undefined)[] = []
  own.setHandler(0, message => void returned.push(message.reason))
  t.match(await errorOf(own.map(0, 'short-lived')), { code: 'ERR_AM_NO_SUCH_ENDPOINT' })
  own.request(0, ECHO)
  await eventually('its return', () => returned.length === 1)
  t.strictSame(returned, ['NO_SUCH_ENDPOINT'])

  const heir = await open(t, { name: 'short-lived' })
  heir.setHandler(ECHO, message => message.reply(1, 7))
  await eventually('the new one', () =>
    own.map(0, 'short-lived').then(
      () => true,
      () => false,
    ),
  )
  t.equal(await echo(own, 0), 7)
})

t.test('two living endpoints cannot have one name, in one process or in two', async t => {
  const first = await open(t, { name: 'mine' })
  const before = (await named.names('mine')).length
  t.match(await errorOf(openEndpoint({ name: 'mine' })), { code: 'ERR_AM_NAME_HELD', message: /mine/ })
  t.match(await start(t, 'mine').receive(), { code: 'ERR_AM_NAME_HELD' })
  t.equal((await named.names('mine')).length, before)
  t.match((await named.lookUp('mine')).json, { record: { endpoint: first.name } })
})

t.test('the name of a process that was killed is taken over at once', async t => {
  const first = start(t, 'phoenix')
  const { name } = await first.receive<{ name: string }>()
  await first.kill()
  t.match((await named.lookUp('phoenix')).json, { record: { endpoint: name } }, 'its lease has not ended yet')
  const second = start(t, 'phoenix')
  const { name: heir } = await second.receive<{ name: string }>()
  t.match((await named.lookUp('phoenix')).json, { record: { endpoint: heir } })
  const own = await open(t)
  await own.map(0, 'phoenix')
  t.equal(await echo(own, 0), 7)
})

t.test('of several that want the name of a dead one at once, one gets it', async t => {
  await open(t) // this thread answers, so those who have the name are alive
  let lost: string[] = []
  // An endpoint begins without its name if the name service does not answer within a second: a busy machine may need
  // another try.
  for (let i = 0; i < CONTESTS_MAX && lost.length < 4; i++) {
    const name = `contested-${i}`
    const dead = start(t, name)
    await dead.receive()
    await dead.kill()
    const rivals = Array.from({ length: 5 }, () => {
      const published = { name, endpoint: newEndpointName(), tag: 0n, drivers: [] }
      return new Publication(named.client(), published)
    })
    const outcomes = await Promise.allSettled(rivals.map(rival => rival.begin()))
    lost = outcomes.flatMap(outcome => (outcome.status === 'rejected' ? [outcome.reason.code] : []))
    for (const rival of rivals) await rival.close()
    if (lost.length >= 4) t.equal((await named.lookUp(name)).status, 404)
  }
  t.strictSame(lost, Array(4).fill('ERR_AM_NAME_HELD'))
})

t.test('an heir that opens while the daemon is away has the name once the daemon is back', async t => {
  const first = start(t, 'twice-bereaved')
  await first.receive()
  await named.kill()
  await first.kill()
  const heir = await open(t, { name: 'twice-bereaved' })
  t.match(await errorOf(openEndpoint({ name: 'twice-bereaved' })), { code: 'ERR_AM_NAME_HELD' })
  await named.up()
  await eventually('the name', async () => {
    const { json } = await named.lookUp('twice-bereaved')
    return String(json.record?.endpoint) === heir.name
  })
})

t.test('what can be no name is refused at once', async t => {
  for (const name of ['', 'Upper', 'a b', 'x'.repeat(201), 'inet:tcp:127.0.0.1:80']) {
    const wrong = { name: 'RangeError', code: 'ERR_AM_ARGUMENT' }
    t.match(await errorOf(openEndpoint({ name })), wrong, name)
    const own = await open(t)
    t.match(await errorOf(own.map(0, name)), wrong, name)
    t.match(await errorOf(openEndpoint({ name: own.name })), wrong, 'the own name of an endpoint')
  }
})

t.test('without the daemon: endpoints open, what is remembered is found, names come later', async t => {
  const child = start(t, 'remembered')
  await child.receive()
  const own = await open(t)
  await own.map(0, 'remembered')
  await named.kill()

  const orphan = await open(t, { name: 'orphan' })
  orphan.setHandler(ECHO, message => message.reply(1, 7))
  t.match(await errorOf(own.map(1, 'never-heard-of')), { code: 'ERR_AM_NO_NAME_SERVICE' })
  await own.map(2, 'remembered')
  t.equal(await echo(own, 0), 7, 'made connections do not depend on it')
  t.equal(await echo(own, 2), 7)
  await own.map(3, orphan.name)
  t.equal(await echo(own, 3), 7, 'nor do own names')

  await named.up()
  await eventually('the name', async () => (await named.lookUp('orphan')).status === 200)
  await eventually('the daemon to be heard again', () =>
    own.map(4, 'orphan').then(
      () => true,
      () => false,
    ),
  )
  t.equal(await echo(own, 4), 7)
  await eventually('the old name', async () => (await named.lookUp('remembered')).status === 200)
})

t.test('a daemon that does not answer delays no endpoint for ever', async t => {
  named.signal('SIGSTOP')
  t.teardown(() => named.signal('SIGCONT'))
  const own = await open(t)
  await withWatchdog('an endpoint with a name', open(t, { name: 'patient' }))
  const failed = await withWatchdog('a failure', errorOf(own.map(1, 'who-knows')))
  t.match(failed, { code: 'ERR_AM_NO_NAME_SERVICE' })
  named.signal('SIGCONT')
  await eventually('the name', async () => (await named.lookUp('patient')).status === 200)
})
