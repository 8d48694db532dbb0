/** Every reason in the enumeration can be reached: those that fallback.test.ts, strangers.test.ts and policy/ do not. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import nodeNet, { type AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { REFUSAL } from '../../fastsockets/bootstrap/bootstrap-layout.ts'
import { BootstrapServer } from '../../fastsockets/bootstrap/bootstrap-server.ts'
import { CANDIDATE_COUNT, hashedPort } from '../../fastsockets/bootstrap/hashed-port.ts'
import { Peers } from '../../fastsockets/connect/peers.ts'
import { nodeInternals } from '../../fastsockets/host/node-internals.ts'
import net, { FALLBACK_REASONS, transportOf } from '../../fastsockets/index.ts'
import { connectPlainly } from '../../fastsockets/raw/raw-peers.ts'
import { readStatusOf } from '../../fastsockets/status/read-status.ts'
import { hasDevice, markOwn } from '../../nic/index.ts'
import { Child } from '../support/child.ts'
import { freePort } from '../support/ports.ts'
import { program, REGISTER, relinked } from '../support/relinked.ts'
import { until } from '../support/until.ts'

const root = new URL('../../../', import.meta.url)
const reached = new Set<string>()

/** What the other test files reach, as a test below makes sure. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  DISABLED: 'fallback',
  PLATFORM: 'fallback',
  KOFFI: 'fallback',
  NOT_RELINKED: 'fallback',
  OTHER_USER: 'fallback',
  LOCAL_ADDRESS: 'fallback',
  STRANGER: 'strangers',
  SILENT: 'strangers',
  VERSION: 'strangers',
  OTHER_HOST: 'strangers',
  REMOTE_HOST: 'cli/doctor',
  NO_RENDEZVOUS: 'containers/sockets',
  POLICY: 'policy/policy-roads',
  POLICY_INVALID: 'policy/policy-roads',
  NOT_STARTED: 'always-starts',
  SHARED_PORT: 'datagram/semantics',
  SOCKET_OPTION: 'datagram/semantics',
  ACCEPTED: 'status/status',
  STARTED_ON_TCP: 'promotion/promotion',
  NOT_MOVABLE: 'promotion/promotion',
}

interface Reported {
  readonly transport: string
  readonly reason?: { readonly code: string }
}

/** That a relinked client, or what else was asked, has met the reason. */
function meets(t: Test, found: unknown, code: string, transport = 'tcp'): void {
  t.match(found, { transport, reason: { code } })
  reached.add(code)
}

/** A TCP server of this process that is not relinked. */
async function plainServer(t: Test): Promise<number> {
  const server = new nodeNet.Server(socket => {
    socket.on('error', () => {})
    socket.pipe(socket)
  })
  markOwn(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  return (server.address() as AddressInfo).port
}

async function clientOf(t: Test, port: number, execArgv: string[] = []): Promise<Reported> {
  const client = new Child(t, program('reason'), [String(port)], relinked({ execArgv }))
  return await client.receive<Reported>()
}

for (const [code, refusal] of [
  ['NOT_LISTENING', REFUSAL.NOT_LISTENING],
  ['LIMIT', REFUSAL.LIMIT],
  ['HANDSHAKE', 99],
] as const) {
  t.test(`${code}: a server that shakes hands, and refuses the connection`, async t => {
    const port = await plainServer(t)
    const peers = new Peers(() => refusal, connectPlainly)
    const ends = { port, address: '127.0.0.1', family: 4 } as const
    const place = { id: randomBytes(16), ...ends, ipv6Only: false, isPortShared: false, isRequired: false }
    const bootstrap = BootstrapServer.open(place, peers, new Set())
    t.teardown(() => bootstrap?.close())
    meets(t, await clientOf(t, port), code)
  })
}

t.test('NODE_INTERNALS: a Node that is built differently', async t => {
  const script = 'import net from "node:net"; net._createServerHandle = undefined'
  const preload = `data:text/javascript,${encodeURIComponent(script)}`
  meets(t, await clientOf(t, await plainServer(t), ['--import', preload]), 'NODE_INTERNALS')
})

t.test('NOT_STARTED: a Node that would warn of what we use', async t => {
  const execArgv = ['--pending-deprecation', '--throw-deprecation']
  meets(t, await clientOf(t, await plainServer(t), execArgv), 'NOT_STARTED')
})

t.test('DRIVER: a process that may make no file of the size of a segment', async t => {
  // What the test runner puts into the environment would end the program at the limit.
  const limited = [
    '-c',
    'unset NODE_OPTIONS; ulimit -f 2048; exec "$0" "$@"',
    process.execPath,
    '--import',
    REGISTER.href,
  ]
  const options = { execPath: '/bin/sh', execArgv: limited }
  const client = new Child(t, program('reason'), [String(await plainServer(t))], options)
  meets(t, await client.receive(), 'DRIVER')
})

for (const [code, host] of [
  [hasDevice() ? 'REMOTE_HOST' : 'NO_RENDEZVOUS', '192.0.2.1'],
  ['ADDRESS', '::1%lo'],
  ['ADDRESS', '::ffff:127.0.0.1'],
] as const) {
  t.test(`${code}: a connect to ${host}`, async t => {
    const socket = net.connect(9, host)
    socket.on('error', () => {})
    await until('the reason', () => transportOf(socket).reason)
    meets(t, transportOf(socket), code)
    socket.destroy()
  })
}

t.test('PIPE: a unix path without a socket', async t => {
  const socket = net.connect('/nowhere/at/all')
  socket.on('error', () => {})
  await until('the reason', () => transportOf(socket).reason)
  meets(t, transportOf(socket), 'PIPE', 'pipe')
  await until('the end', () => socket.closed)
})

t.test('OWN_HANDLE: a socket that was made with a handle', async t => {
  const handle = nodeInternals()?.createTcp()
  const socket = new net.Socket({ handle, manualStart: true } as never).connect(
    await plainServer(t),
    '127.0.0.1',
  )
  socket.on('error', () => {})
  await until('the reason', () => transportOf(socket).reason)
  meets(t, transportOf(socket), 'OWN_HANDLE')
  socket.destroy()
})

t.test('NOT_INSTALLED: a connection that is older than we are', async t => {
  const early = new Child(t, program('early'), [String(await plainServer(t))])
  meets(t, await early.receive(), 'NOT_INSTALLED')
})

t.test('NOT_CONNECTED: sockets that were closed while they connected, or never asked', async t => {
  const port = await plainServer(t)
  const socket = net.connect(port, '127.0.0.1')
  t.match(transportOf(socket), { transport: 'connecting', reason: undefined })
  socket.destroy()
  meets(t, transportOf(socket), 'NOT_CONNECTED', 'none')
  await once(socket, 'close')
  meets(t, transportOf(socket), 'NOT_CONNECTED', 'none')

  const resolving = net.connect({ port, host: 'localhost', lookup: () => {} })
  resolving.destroy()
  meets(t, transportOf(resolving), 'NOT_CONNECTED', 'none')
  meets(t, transportOf(new net.Socket()), 'NOT_CONNECTED', 'none')
})

t.test('NOT_CONNECTED: what a socket was before its last connect is forgotten', async t => {
  const port = await plainServer(t)
  const socket = net.connect(port, '127.0.0.1')
  await once(socket, 'connect')
  t.equal(transportOf(socket).transport, 'tcp')
  socket.end()
  socket.resume()
  await once(socket, 'close')
  t.equal(transportOf(socket).transport, 'tcp', 'closed, and still known')
  const other = await plainServer(t)
  socket.connect({ port: other, host: 'localhost', lookup: () => {} })
  t.equal(transportOf(socket).transport, 'connecting')
  socket.destroy()
  meets(t, transportOf(socket), 'NOT_CONNECTED', 'none')
})

t.test('PORTS_TAKEN: a listener whose candidates are all taken', async t => {
  const port = await freePort()
  for (let candidate = 0; candidate < CANDIDATE_COUNT; candidate++) {
    const squatter = new nodeNet.Server(socket => socket.destroy())
    markOwn(squatter)
    squatter.on('error', () => {})
    squatter.listen(hashedPort(port, candidate), '127.0.0.1')
    t.teardown(() => void squatter.close())
  }
  const server = new Child(t, program('server'), ['echo', '127.0.0.1', String(port)], relinked())
  await server.receive()
  t.match(readStatusOf(server.pid), [
    { fallbacks: { PORTS_TAKEN: 1 }, listeners: [{ reason: 'PORTS_TAKEN' }] },
  ])
  reached.add('PORTS_TAKEN')
})

t.test('CLUSTER: a raw server of a cluster worker', async t => {
  const primary = new Child(t, program('cluster-listener'), [], relinked())
  const { pid } = await primary.receive<{ pid: number }>()
  await until('the count', () => (readStatusOf(pid)[0]?.fallbacks.CLUSTER ?? 0) > 0)
  reached.add('CLUSTER')
})

t.test('there is no reason that no test reaches', async t => {
  for (const code of Object.keys(FALLBACK_REASONS)) {
    const file = ELSEWHERE[code]
    if (file === undefined) {
      t.ok(reached.has(code), code)
      continue
    }
    const source = readFileSync(fileURLToPath(new URL(`tests/fastsockets/${file}.test.ts`, root)), 'utf8')
    t.match(source, new RegExp(`\\b${code}\\b`), `${code}, in ${file}`)
  }
})
