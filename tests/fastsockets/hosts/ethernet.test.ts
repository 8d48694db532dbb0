/** Sockets between two hosts of one Ethernet segment, over raw frames where both policies name `ethernet`. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { Child, plainEnvironment } from '../../support/child.ts'
import { program, REGISTER } from '../../support/relinked.ts'
import {
  cut,
  type Host,
  makeSwitchedHosts,
  makeTwoHosts,
  mend,
  noTwoHosts,
  setMtu,
} from '../../support/two-hosts.ts'
import type { Called, Question, Wire } from '../programs/neighbour.ts'
import type { Results, Served } from '../programs/services.ts'

const skip = noTwoHosts()
if (skip) t.comment(`SKIPPED: sockets over ethernet: ${skip}`)

const PORT = 8080
const DRIVERS = 'shm,ethernet'
const OVER_ETHERNET = { transport: 'ethernet', echoed: 200_000 }
const WITHOUT_RIGHT = ['setpriv', '--bounding-set', '-net_raw', '--inh-caps', '-net_raw']

const CLI = fileURLToPath(new URL('../../../fastsockets/cli/main.js', import.meta.url))

interface Options {
  readonly env?: NodeJS.ProcessEnv
  /** A command before the program. */
  readonly by?: readonly string[]
}

/** A relinked program on that host. */
function relinkedOn(t: Test, { namespace }: Host, name: string, { env = {}, by = [] }: Options = {}): Child {
  return new Child(t, program(name), [], {
    execPath: 'ip',
    execArgv: ['netns', 'exec', namespace, ...by, process.execPath, '--import', REGISTER.href],
    env: { ...plainEnvironment(), FASTSOCKETS_DRIVERS: DRIVERS, FASTSOCKETS_RENDEZVOUS: 'off', ...env },
  })
}

interface Hosts {
  readonly near: Host
  readonly far: Host
}

async function serve(t: Test, far: Host, options?: Options): Promise<Child> {
  const server = relinkedOn(t, far, 'neighbour', options)
  await server.ask({ ask: 'listen', host: '0.0.0.0', port: PORT } satisfies Question)
  return server
}

function callFrom(client: Child, far: Host): Promise<Called> {
  return client.ask<Called>({ ask: 'call', host: far.address, port: PORT } satisfies Question)
}

/** What a new client on the near host gets. */
async function call(t: Test, { near, far }: Hosts, options?: Options): Promise<Called> {
  const client = relinkedOn(t, near, 'neighbour', options)
  const called = await callFrom(client, far)
  await client.kill()
  return called
}

function onTcp(code: string, text: RegExp): object {
  return { transport: 'tcp', echoed: 200_000, reason: { code, text } }
}

t.test('both policies name it: frames, and the addresses that TCP would show', { skip }, async t => {
  const hosts = makeTwoHosts(t)
  const { near, far } = hosts
  await serve(t, far)
  for (const start of ['fast', 'tcp']) {
    const called = await call(t, hosts, { env: { FASTSOCKETS_START: start } })
    t.match(called, { ...OVER_ETHERNET, local: near.address, remote: far.address }, start)
    t.match(called.there, { transport: 'ethernet', local: far.address, remote: near.address })
  }
})

t.test('otherwise TCP, with the reason', { skip }, async t => {
  const hosts = makeTwoHosts(t)
  const named = await serve(t, hosts.far)
  t.match(
    await call(t, hosts, { env: { FASTSOCKETS_DRIVERS: '' } }),
    onTcp('NO_RENDEZVOUS', /rendezvous/),
    'the policy of the client does not name it',
  )
  t.match(
    await call(t, hosts, { by: WITHOUT_RIGHT }),
    onTcp('REMOTE_HOST', /EPERM: raw frames need CAP_NET_RAW/),
    'the client may send no raw frames',
  )
  await named.kill()
  await serve(t, hosts.far, { env: { FASTSOCKETS_DRIVERS: '' } })
  t.match(
    await call(t, hosts),
    onTcp('STRANGER', /it hung up without a word/),
    'the policy of the server does not name it',
  )
})

t.test('a segment that forwards no such frames: TCP, and the reason says so', { skip }, async t => {
  const { near, far } = makeSwitchedHosts(t, 1400)
  await serve(t, far)
  const client = relinkedOn(t, near, 'neighbour')
  // No large answer: TCP's longest segments do not get through, either.
  const wire = await client.ask<Wire>({ ask: 'hold', host: far.address, port: PORT } satisfies Question)
  const text = /no frame of \d+ bytes .* forwards no EtherType 0x88b5, or no frames so long/
  t.match(wire, { transport: 'tcp', reason: { code: 'HANDSHAKE', text } })
})

t.test('http and ftp', { skip }, async t => {
  const { near, far } = makeTwoHosts(t)
  const server = relinkedOn(t, far, 'services')
  const { http, ftp } = await server.ask<Served>({ ask: 'serve', host: far.address })
  const client = relinkedOn(t, near, 'services')
  t.strictSame(await client.ask<Results>({ ask: 'call', host: far.address, http, ftp }), {
    posted: 3_000_000,
    stored: 3_000_000,
    wires: { http: 'ethernet', control: 'ethernet', data: ['ethernet'] },
  })
})

t.test('raw sockets', { skip }, async t => {
  const { near, far } = makeTwoHosts(t)
  const server = relinkedOn(t, far, 'neighbour')
  await server.ask({ ask: 'raw-listen', host: '0.0.0.0', port: PORT } satisfies Question)
  const client = relinkedOn(t, near, 'neighbour')
  const called = await client.ask({ ask: 'raw-call', host: far.address, port: PORT } satisfies Question)
  t.match(called, OVER_ETHERNET)
})

t.test('a killed process ends its connections, on either side', { skip }, async t => {
  const { near, far } = makeTwoHosts(t)
  const hold: Question = { ask: 'hold', host: far.address, port: PORT }
  const server = await serve(t, far)
  const client = relinkedOn(t, near, 'neighbour')
  t.match(await client.ask<Wire>(hold), { transport: 'ethernet' })
  await client.kill()
  t.strictSame(await server.receive(), { closed: true })
  const other = relinkedOn(t, near, 'neighbour')
  t.match(await other.ask<Wire>(hold), { transport: 'ethernet' })
  await server.kill()
  t.strictSame(await other.receive(), { ended: 'end' })
})

t.test(
  'a frozen process is not dead, and a cable that is plugged in again loses nothing',
  { skip },
  async t => {
    const { near, far } = makeTwoHosts(t)
    const server = await serve(t, far)
    const client = relinkedOn(t, near, 'neighbour')
    t.match(await callFrom(client, far), OVER_ETHERNET)
    await server.receive()
    server.process.kill('SIGSTOP')
    const frozen = callFrom(client, far)
    await new Promise(resolve => setTimeout(resolve, 300))
    server.process.kill('SIGCONT')
    t.match(await frozen, OVER_ETHERNET)
    for (const host of [near, far]) {
      const calling = callFrom(client, far)
      cut(host)
      await new Promise(resolve => setTimeout(resolve, 100))
      mend(host)
      t.match(await calling, OVER_ETHERNET, host.device)
    }
  },
)

t.test('a device whose MTU shrinks breaks the connection, with a code', { skip }, async t => {
  const { near, far } = makeTwoHosts(t)
  await serve(t, far)
  const client = relinkedOn(t, near, 'neighbour')
  t.match(await callFrom(client, far), OVER_ETHERNET)
  setMtu(near, 1000)
  t.match(await callFrom(client, far), { error: { code: 'ECONNRESET' } })
})

/** `fastsockets nic open` on that host; resolves with the path of its socket, and the process. */
async function helpOn(
  t: Test,
  { namespace }: Host,
  user: number,
): Promise<{ path: string; helper: ChildProcess }> {
  const folder = mkdtempSync(join(tmpdir(), 'nic-'))
  const path = join(folder, 'socket')
  const args = ['nic', 'open', '--socket', path, '--user', `${user}`]
  const helper = spawn('ip', ['netns', 'exec', namespace, process.execPath, CLI, ...args], {
    env: plainEnvironment(),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(helper, 'close')
  t.teardown(async () => {
    helper.kill('SIGKILL')
    await ended
    rmSync(folder, { recursive: true })
  })
  await Promise.race([once(helper.stdout, 'data'), ended])
  return { path, helper }
}

t.test('programs that may send no raw frames get their sockets from a helper', { skip }, async t => {
  const hosts = makeTwoHosts(t)
  const [there, here, stranger] = await Promise.all([
    helpOn(t, hosts.far, 0),
    helpOn(t, hosts.near, 0),
    helpOn(t, hosts.near, 4242),
  ])
  await serve(t, hosts.far, { by: WITHOUT_RIGHT, env: { FASTSOCKETS_NIC: there.path } })
  const callBy = (path: string): Promise<Called> =>
    call(t, hosts, { by: WITHOUT_RIGHT, env: { FASTSOCKETS_NIC: path } })
  const called = await callBy(here.path)
  t.match(called, OVER_ETHERNET)
  t.match(called.there, { transport: 'ethernet' })
  t.match(
    await callBy(stranger.path),
    onTcp('REMOTE_HOST', /the helper at .* gives none/),
    'the helper is not for this user',
  )
  here.helper.kill('SIGTERM')
  const [code] = await once(here.helper, 'close')
  t.equal(code, 0)
  t.match(await callBy(here.path), onTcp('REMOTE_HOST', /ENOENT/), 'it has removed its socket')
})
