/** Whenever the fast way is not to be had, everything works over TCP as before, and the reason is on record. */
import { fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { hashedPort } from '../../fastsockets/bootstrap/hashed-port.ts'
import net, {
  type AddressInfo,
  type TcpNetConnectOpts,
  type Transport,
  transportOf,
} from '../../fastsockets/index.ts'
import { readStatusOf } from '../../fastsockets/status/read-status.ts'
import { Child, plainEnvironment } from '../support/child.ts'
import { crowdedPort, freePort, portWithFirstHashed } from '../support/ports.ts'
import { program, relinked } from '../support/relinked.ts'
import { skipHere } from '../support/skip.ts'
import { eventually } from '../support/until.ts'

const NOBODY = 65534
/** Has no entry in /etc/passwd. */
const UNKNOWN = 54_321

async function echoOnce(port: number, options: Partial<TcpNetConnectOpts> = {}): Promise<Transport> {
  const socket = net.connect({ port, host: '127.0.0.1', ...options })
  socket.end('hello')
  const [data] = await once(socket, 'data')
  const transport = transportOf(socket)
  socket.destroy()
  if (String(data) !== 'hello') throw new Error(`echoed ${data}`)
  return transport
}

t.test(
  'a name of two addresses, of which one is refused, is fast each time; the other is found when it is there',
  async t => {
    const lookup = (_name: string, _options: object, tell: (error: null, found: object[]) => void): void =>
      tell(null, [
        { address: '::1', family: 6 },
        { address: '127.0.0.1', family: 4 },
      ])
    const byName = { host: 'two.addresses', lookup: lookup as never, autoSelectFamily: true }
    const server = new Child(t, program('server'), ['echo'], relinked())
    const { port } = await server.receive<{ port: number }>()
    for (let i = 0; i < 3; i++) t.match(await echoOnce(port, byName), { transport: 'shm', reason: undefined })
    await server.kill()
    // While no server listens, nothing may be cached that would keep the next one from being fast.
    for (let i = 0; i < 3; i++) await t.rejects(echoOnce(port, byName), { code: 'ECONNREFUSED' })
    await new Promise(resolve => setTimeout(resolve, 1100))
    const other = new Child(t, program('server'), ['echo', '::1', String(port)], relinked())
    await other.receive()
    t.match(await echoOnce(port, byName), { transport: 'shm', reason: undefined })
  },
)

t.test('two relinked programs are fast', async t => {
  const server = new Child(t, program('server'), ['echo'], relinked())
  const { port } = await server.receive<{ port: number }>()
  t.match(await echoOnce(port), { transport: 'shm', reason: undefined })
  t.match(await server.receive(), { accepted: 'shm' })
})

t.test('programs that were started with unknown ciphers are fast, too', async t => {
  const options = relinked({ execArgv: ['--tls-cipher-list=NONE_SUCH'] })
  const server = new Child(t, program('server'), ['echo'], options)
  const { port } = await server.receive<{ port: number }>()
  const client = new Child(t, program('reason'), [String(port)], options)
  t.match(await client.receive(), { transport: 'shm', reason: undefined })
  t.match(await server.receive(), { accepted: 'shm' })
})

t.test('a server that is not relinked', async t => {
  const server = new Child(t, program('server'), ['echo'])
  const { port } = await server.receive<{ port: number }>()
  t.match(await echoOnce(port), { transport: 'tcp', reason: { code: 'NOT_RELINKED' } })
  t.match(await echoOnce(port), { transport: 'tcp', reason: { code: 'NOT_RELINKED' } }, 'remembered')
})

t.test('a socket that connects over TCP again at once is on the status page once', async t => {
  const plain = new Child(t, program('server'), ['echo'])
  const { port } = await plain.receive<{ port: number }>()
  const remote = `127.0.0.1:${port}`
  const rows = () => readStatusOf(process.pid)[0]?.sockets.filter(row => row.remote === remote) ?? []
  const socket = new net.Socket()
  for (let count = 1; count <= 3; count++) {
    // Sooner than a row is opened.
    if (count > 1) await once(socket.destroy(), 'close')
    await once(socket.connect(port, '127.0.0.1'), 'connect')
    t.equal(transportOf(socket).transport, 'tcp')
  }
  await eventually('the row', () => rows().length > 0)
  t.match(rows(), [{ kind: 'tcp', role: 'client', reason: 'NOT_RELINKED' }])
  t.equal(rows().length, 1)
  await once(socket.destroy(), 'close')
  t.equal(rows().length, 0)
})

t.test('a client that is not relinked', async t => {
  const server = new Child(t, program('server'), ['echo'], relinked())
  const { port } = await server.receive<{ port: number }>()
  const client = new Child(t, program('client'), [String(port)])
  t.match(await client.receive(), { connected: 'tcp' })
  t.match(await server.receive(), { accepted: 'tcp' })
})

t.test('a server that has listened on a unix path before', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'fastsockets-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'socket')
  const server = net.createServer(socket => socket.pipe(socket)).listen(path)
  await once(server, 'listening')
  server.close()
  await once(server, 'close')
  // Now another server has the path.
  await new Child(t, program('unix'), ['server', path]).receive()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  const { port } = server.address() as AddressInfo
  const client = new Child(t, program('client'), [String(port)], relinked())
  t.match(await client.receive(), { connected: 'shm' })
  const other = new Child(t, program('unix'), ['client', path], relinked())
  t.match(await other.receive(), { transport: 'pipe' })
})

t.test('a port without a listener is refused as ever', async t => {
  const port = await freePort()
  const socket = net.connect(port, '127.0.0.1')
  const [error] = await once(socket, 'error')
  t.match(error, {
    code: 'ECONNREFUSED',
    syscall: 'connect',
    address: '127.0.0.1',
    port,
    message: `connect ECONNREFUSED 127.0.0.1:${port}`,
  })
})

t.test('the first hashed port is taken: the next candidate serves', async t => {
  const port = await crowdedPort(t, 1)
  const server = new Child(t, program('server'), ['echo', '127.0.0.1', String(port)], relinked())
  await server.receive()
  t.match(await echoOnce(port), { transport: 'shm' })
})

t.test('all hashed ports are taken: TCP only, and the listener works all the same', async t => {
  const port = await crowdedPort(t)
  const server = new Child(t, program('server'), ['echo', '127.0.0.1', String(port)], relinked())
  await server.receive()
  t.match(await echoOnce(port), { transport: 'tcp', reason: { code: 'STRANGER' } })
})

t.test('a program that wants to listen on one of our hashed ports gets it', async t => {
  const port = await portWithFirstHashed()
  const first = net.createServer(socket => socket.pipe(socket)).listen(port, '127.0.0.1')
  await once(first, 'listening')
  t.teardown(() => void first.close())
  const second = net.createServer(socket => socket.pipe(socket)).listen(hashedPort(port, 0), '127.0.0.1')
  await once(second, 'listening')
  t.teardown(() => void second.close())
  const client = new Child(t, program('client'), [String(port)], relinked())
  t.match(
    await client.receive(),
    { connected: 'shm' },
    'and the first listener is fast by its next candidate',
  )
})

t.test('a client that chooses its local address', async t => {
  const server = new Child(t, program('server'), ['echo'], relinked())
  const { port } = await server.receive<{ port: number }>()
  t.match(await echoOnce(port, { localAddress: '127.0.0.1' }), {
    transport: 'tcp',
    reason: { code: 'LOCAL_ADDRESS' },
  })
})

t.test('a server of another user', async t => {
  if (process.getuid?.() !== 0) return skipHere(t, 'a server of another user (needs root to become one)')
  const server = new Child(t, program('server'), ['echo'], relinked({ uid: NOBODY, gid: NOBODY }))
  const { port } = await server.receive<{ port: number }>()
  t.match(await echoOnce(port), { transport: 'tcp', reason: { code: 'OTHER_USER' } })
})

t.test('a client of another user', async t => {
  if (process.getuid?.() !== 0) return skipHere(t, 'a client of another user (needs root to become one)')
  const server = new Child(t, program('server'), ['echo'], relinked())
  const { port } = await server.receive<{ port: number }>()
  const client = new Child(t, program('client'), [String(port)], relinked({ uid: NOBODY, gid: NOBODY }))
  t.match(await client.receive(), { connected: 'tcp' })
})

t.test('a user without an entry and a home', async t => {
  if (process.getuid?.() !== 0) return skipHere(t, 'a user without an entry (needs root to become one)')
  const { HOME: _home, XDG_CONFIG_HOME: _config, XDG_CACHE_HOME: _cache, ...env } = plainEnvironment()
  const options = relinked({ uid: UNKNOWN, gid: UNKNOWN, env })
  const server = new Child(t, program('server'), ['echo'], options)
  const { port } = await server.receive<{ port: number }>()
  const client = new Child(t, program('client'), [String(port)], options)
  t.match(await client.receive(), { connected: 'shm' })
})

t.test('switched off by the environment', async t => {
  const server = new Child(t, program('server'), ['echo'], relinked())
  const { port } = await server.receive<{ port: number }>()
  const env = { ...plainEnvironment(), FASTSOCKETS_DISABLE: '1' }
  const client = new Child(t, program('reason'), [String(port)], relinked({ env }))
  t.match(await client.receive(), { transport: 'tcp', reason: { code: 'DISABLED' } })
  const script = `for (const { prototype } of [net.Socket, net.Server, dgram.Socket])
    for (const name of Object.getOwnPropertyNames(prototype)) console.log(name, String(Object.getOwnPropertyDescriptor(prototype, name).value))`
  const methods = (options?: string[]) =>
    spawnSync(process.execPath, [...(options ?? []), '-e', script], { env, encoding: 'utf8' }).stdout
  t.equal(methods(relinked().execArgv), methods(), 'nothing is wrapped')
  t.match(methods(), /^connect /m)
})

t.test('another platform than Linux: register loads, everything is over TCP', async t => {
  const server = new Child(t, program('server'), ['echo'])
  const { port } = await server.receive<{ port: number }>()
  const disguise = 'data:text/javascript,Object.defineProperty(process,"platform",{value:"plan9"})'
  const client = new Child(
    t,
    program('reason'),
    [String(port)],
    relinked({ execArgv: ['--import', disguise] }),
  )
  t.match(await client.receive(), { transport: 'tcp', reason: { code: 'PLATFORM' } })
})

t.test('without koffi: register loads, everything is over TCP', async t => {
  const server = new Child(t, program('server'), ['echo'])
  const { port } = await server.receive<{ port: number }>()
  const root = fileURLToPath(new URL('../../../', import.meta.url))
  const copy = mkdtempSync(join(tmpdir(), 'fastsockets-'))
  t.teardown(() => rmSync(copy, { recursive: true, force: true }))
  for (const part of ['dist', 'package.json', 'node_modules/debug', 'node_modules/ms']) {
    cpSync(join(root, part), join(copy, part), { recursive: true })
  }
  const child = fork(join(copy, 'dist/tests/fastsockets/programs/reason.js'), [String(port)], {
    execArgv: ['--import', join(copy, 'dist/fastsockets/register.js')],
  })
  const [found] = await once(child, 'message')
  child.kill()
  t.match(found, { transport: 'tcp', reason: { code: 'KOFFI' } })
})
