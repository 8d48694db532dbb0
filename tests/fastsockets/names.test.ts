/** Listeners and clients that find each other by the name service; and that do without it. */
import { once } from 'node:events'
import { chmodSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { hashedPort } from '../../fastsockets/bootstrap/hashed-port.ts'
import { hostIdentity } from '../../nic/index.ts'
import { Child, plainEnvironment } from '../support/child.ts'
import { Named } from '../support/named.ts'
import { NOBODY, noOtherUser } from '../support/other-user.ts'
import { crowdedPort, freePort, portWithFirstHashed } from '../support/ports.ts'
import { program, relinked } from '../support/relinked.ts'
import { eventually } from '../support/until.ts'

const REQUIRED = fileURLToPath(new URL('../../fastsockets/register.cjs', import.meta.url))
const ATTEMPTS = 5
/** The promise. */
const WAIT_MS_MAX = 5
const CONNECTS = 21
/** Of so many the best median counts: a machine that is busy makes all of them longer, and none shorter. */
const ROUNDS = 5
/**
 * The timer of 5 ms may be late by a turn of the event loop, and asking the daemon, and giving up, is work of its own:
 * on a busy machine several milliseconds. A client that does not give up waits until the daemon goes on, or for the
 * timeout of the call.
 */
const ALLOWANCE_MS = 20

function environment(named: Named): NodeJS.ProcessEnv {
  return { ...plainEnvironment(), FASTSOCKETS_NAMES: named.address }
}

async function listen(
  t: Test,
  named: Named,
  host = '127.0.0.1',
  port = 0,
): Promise<{ child: Child; port: number }> {
  const child = new Child(
    t,
    program('server'),
    ['echo', host, String(port)],
    relinked({ env: environment(named) }),
  )
  return { child, port: (await child.receive<{ port: number }>()).port }
}

async function connect(t: Test, named: Named, port: number): Promise<string> {
  return connectAs(t, named, [String(port)])
}

async function connectAs(t: Test, named: Named, args: string[]): Promise<string> {
  const client = new Child(t, program('client'), args, relinked({ env: environment(named) }))
  return (await client.receive<{ connected: string }>()).connected
}

/** On a busy machine the daemon's answer may miss the 5 ms that a connect waits for it; then it is TCP, rightly. */
async function connectFast(t: Test, named: Named, port: number): Promise<string> {
  let transport = ''
  for (let i = 0; i < ATTEMPTS && transport !== 'shm'; i++) transport = await connect(t, named, port)
  return transport
}

/** Ports of this process, which is not relinked, where connections are taken. */
async function plainPorts(t: Test, count: number): Promise<number[]> {
  const ports: number[] = []
  for (let i = 0; i < count; i++) {
    const server = createServer(socket => socket.on('error', () => {}).resume()).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => void server.close())
    ports.push((server.address() as AddressInfo).port)
  }
  return ports
}

async function registered(named: Named, port: number, address = '127.0.0.1') {
  return await eventually('the name', async () => {
    const { status, json } = await named.lookUp(`inet:tcp:${address}:${port}`)
    return status === 200 && json
  })
}

t.test('a listener says where its bootstrap is', async t => {
  const named = await Named.start(t)
  const { child, port } = await listen(t, named, '127.0.0.1', await portWithFirstHashed())
  t.match(await registered(named, port), {
    record: { kind: 'inet', pid: child.pid, uid: process.getuid?.(), port: hashedPort(port, 0) },
  })
})

t.test('the name of a listener on all addresses is there for each of them', async t => {
  const named = await Named.start(t)
  const { port } = await listen(t, named, '::')
  for (const address of ['127.0.0.1', '::1'])
    t.match(await registered(named, port, address), { record: { port: Number } })
})

t.test('hashed ports that others have do not matter', async t => {
  const named = await Named.start(t)
  const port = await crowdedPort(t)
  await listen(t, named, '127.0.0.1', port)
  const { record } = await registered(named, port)
  t.not(record?.port, undefined)
  t.equal(await connectFast(t, named, port), 'shm')
})

const skip = noOtherUser(program('name-squatter'))

t.test('a name that another user has registered leads no client to that user', { skip }, async t => {
  const named = await Named.start(t)
  chmodSync(named.folder, 0o755)
  const port = await crowdedPort(t)
  const args = [named.address, String(port)]
  const squatter = new Child(t, program('name-squatter'), args, { uid: NOBODY, gid: NOBODY })
  await squatter.receive()
  t.match(await registered(named, port), { owner: `uid:${NOBODY}` })
  // Not relinked: a listener of root, which is an administrator there, would take its name back.
  await new Child(t, program('server'), ['echo', '127.0.0.1', String(port)]).receive()
  t.equal(await connect(t, named, port), 'tcp')
  t.match(await squatter.ask({}), { callers: 0 })
})

t.test('a name that leads to a false greeting: the client goes on with the hashed ports', async t => {
  const named = await Named.start(t)
  const port = await portWithFirstHashed()
  // It says nothing, so that the named greeting comes first.
  await new Child(t, program('squatter'), ['silent', String(port)]).receive()
  await new Child(t, program('server'), ['echo', '127.0.0.1', String(port)], relinked()).receive()
  const liar = new Child(t, program('name-squatter'), [named.address, String(port), 'greet'])
  await liar.receive()
  const [otherPort] = await plainPorts(t, 1)
  let callers = 0
  // On a busy machine the daemon may answer too late for a connect to call the liar at all. The first connect of a program loads
  // the client of the name service, and may find the hashed port meanwhile.
  for (let i = 0; i < ATTEMPTS && callers === 0; i++) {
    t.equal(await connectAs(t, named, [String(port), 'hold', String(otherPort)]), 'shm')
    callers = (await liar.ask<{ callers: number }>({})).callers
  }
  t.ok(callers > 0, 'the client has called the liar')
})

t.test('nor do they by --require, not even for what is connected at once', async t => {
  const named = await Named.start(t)
  const port = await crowdedPort(t)
  await listen(t, named, '127.0.0.1', port)
  await registered(named, port)
  let transport = ''
  for (let i = 0; i < ATTEMPTS && transport !== 'shm'; i++) {
    const options = { env: environment(named), execArgv: ['--require', REQUIRED] }
    transport = (
      await new Child(t, program('client'), [String(port)], options).receive<{ connected: string }>()
    ).connected
  }
  t.equal(transport, 'shm')
})

t.test('a server that was killed and started again has its name at once', async t => {
  const named = await Named.start(t)
  const port = await crowdedPort(t)
  const { child } = await listen(t, named, '127.0.0.1', port)
  await registered(named, port)
  await child.kill()
  const { child: heir } = await listen(t, named, '127.0.0.1', port)
  await eventually(
    'the heir',
    async () => Number((await named.lookUp(`inet:tcp:127.0.0.1:${port}`)).json.record?.pid) === heir.pid,
  )
  t.equal(await connectFast(t, named, port), 'shm')
})

t.test('a daemon that comes later hears of listeners that are there already', async t => {
  const named = new Named(t)
  const { port } = await listen(t, named, '127.0.0.1', await portWithFirstHashed())
  t.equal(await connect(t, named, port), 'shm', 'it is not needed')
  await named.up()
  t.match(await registered(named, port), { record: { port: hashedPort(port, 0) } })
})

t.test('a daemon that has stopped, or hangs, keeps no connection from being made', async t => {
  const named = await Named.start(t)
  const { port } = await listen(t, named)
  await registered(named, port)
  const plain = new Child(t, program('server'), ['echo'], {})
  const { port: plainPort } = await plain.receive<{ port: number }>()
  named.signal('SIGSTOP')
  t.equal(await connect(t, named, port), 'shm')
  t.equal(await connect(t, named, plainPort), 'tcp')
  named.signal('SIGCONT')
  await named.kill()
  t.equal(await connect(t, named, port), 'shm')
  t.equal(await connect(t, named, plainPort), 'tcp')
})

t.test('no connection waits for a daemon that hangs, or is not there, beyond its 5 ms', async t => {
  // A port is asked for once, because the result is cached. The hashed ports have no listener, so the client waits for
  // the daemon.
  const ports = await plainPorts(t, CONNECTS)
  const named = await Named.start(t)
  const places = {
    none: 'unix:/nonexistent/named.sock',
    stopped: named.address,
    away: `http://127.0.0.1:${await freePort()}`,
  }
  named.signal('SIGSTOP')
  t.teardown(() => named.signal('SIGCONT'))
  const best: Record<string, number> = {}
  for (let round = 0; round < ROUNDS; round++) {
    for (const [place, address] of Object.entries(places)) {
      const env = { ...plainEnvironment(), FASTSOCKETS_NAMES: address }
      const client = new Child(t, program('timed-connects'), ports.map(String), relinked({ env }))
      const { times } = await client.receive<{ times: number[] }>()
      const medianMs = times.sort((a, b) => a - b)[CONNECTS >> 1] as number
      best[place] = Math.min(best[place] ?? Number.POSITIVE_INFINITY, medianMs)
    }
  }
  t.comment(JSON.stringify(best))
  const { none = 0, stopped = 0, away = 0 } = best
  t.ok(stopped - none < WAIT_MS_MAX + ALLOWANCE_MS, `${stopped - none} ms more while it hangs`)
  t.ok(away - none < WAIT_MS_MAX + ALLOWANCE_MS, `${away - none} ms more while nobody is there`)
})

t.test('a record of nonsense leads nowhere, and does no harm', async t => {
  const named = await Named.start(t)
  const plain = new Child(t, program('server'), ['echo'], {})
  const { port } = await plain.receive<{ port: number }>()
  const lease = await named.grant()
  for (const liar of [port, 1, 65_535]) {
    // It says that it is of this host: only then is its port called.
    const record = { endpoint: 'e', host: hostIdentity().toString('hex'), port: liar }
    const { status } = await named.register(`inet:tcp:127.0.0.1:${port}`, lease, record)
    t.ok(status < 300, `registered: ${status}`)
    t.equal(await connect(t, named, port), 'tcp')
  }
})
