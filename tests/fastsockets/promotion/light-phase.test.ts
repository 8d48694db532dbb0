/** A program whose sockets have cost little has loaded nothing; one that goes on becomes fast, and so does its server. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { START_PRICE_US, WRITE_US } from '../../../fastsockets/promotion/price.ts'
import { readAllStatus, readStatusOf } from '../../../fastsockets/status/read-status.ts'
import { Child, plainEnvironment } from '../../support/child.ts'
import { program, REGISTER, relinked } from '../../support/relinked.ts'
import { eventually } from '../../support/until.ts'

const CLI = fileURLToPath(new URL('../../../fastsockets/cli/main.js', import.meta.url))

/** A thread that has a third of a core. */
const WAITING_TIMES = 3

t.test('connections start on TCP', async t => {
  const { FASTSOCKETS_START: _, ...env } = plainEnvironment()
  const server = new Child(t, program('light-phase'), ['server'], relinked({ env }))
  const { port } = await server.receive<{ port: number }>()
  const client = new Child(t, program('light-phase'), ['client', String(port)], relinked({ env }))
  t.strictSame(await client.ask({ count: 200 }), { isLoaded: false }, 'for a while')
  t.strictSame(await server.ask({}), { isLoaded: false }, 'likewise the server')
  await checkSeen(t, server, client, port)
  // Not relinked, accepted before there is a page.
  const idle = net.connect(port, '127.0.0.1')
  t.teardown(() => void idle.destroy())
  await once(idle, 'connect')
  await eventually('the move', async () => {
    await client.ask({ count: 500 })
    const sockets = readStatusOf(client.pid)[0]?.sockets ?? []
    return sockets.some(({ transport }) => transport === 'shm')
  })
  t.strictSame(await server.ask({}), { isLoaded: true })
  t.match(readStatusOf(client.pid), [{ isLoaded: true, promoted: 1 }], 'it has a page now')
  t.equal(readStatusOf(client.pid).length, 1)
  for (const [{ pid }, wanted] of [
    [client, 'shm'],
    [server, 'shm tcp'],
  ] as const)
    await eventually('a row for each', () => {
      const sockets = readStatusOf(pid)[0]?.sockets ?? []
      return (
        sockets
          .map(({ transport }) => transport)
          .sort()
          .join(' ') === wanted
      )
    })
  t.match(readStatusOf(client.pid), [{ opened: 1, fallbacks: { STARTED_ON_TCP: 1 } }])
  t.match(readStatusOf(server.pid), [{ opened: 2, listeners: [{ acceptedTcp: 2 }] }])
  await client.kill()
})

t.test('a program that waits for its core stays on TCP for longer', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'fs-light-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  // The client reads that it has waited for twice as long as it ran.
  const times = join(folder, 'schedstat')
  writeFileSync(times, '1000000000 2000000000 1')
  const shim = join(folder, 'shim.cjs')
  writeFileSync(
    shim,
    `const fs = require('node:fs')
    const { openSync } = fs
    fs.openSync = (path, ...rest) => openSync(/schedstat$/.test(path) ? ${JSON.stringify(times)} : path, ...rest)
    require('node:module').syncBuiltinESMExports()`,
  )
  const { FASTSOCKETS_START: _, ...env } = plainEnvironment()
  const server = new Child(t, program('light-phase'), ['server'], relinked({ env }))
  const { port } = await server.receive<{ port: number }>()
  const options = relinked({ env, execArgv: ['--require', shim] })
  const client = new Child(t, program('light-phase'), ['client', String(port)], options)
  const count = (WAITING_TIMES * START_PRICE_US) / WRITE_US - 1000
  t.strictSame(await client.ask({ count }), { isLoaded: false })
  await client.kill()
})

/** What is known of two programs that have loaded nothing. */
async function checkSeen(t: Test, server: Child, client: Child, port: number): Promise<void> {
  const counts = { kind: 'tcp', transport: 'tcp', bytesIn: 1000, bytesOut: 1000 }
  const place = `127.0.0.1:${port}`
  const all = readAllStatus()
  const of = ({ pid }: Child): unknown => all.filter(status => status.pid === pid)
  t.match(of(server), [
    {
      isLoaded: false,
      thread: 0,
      program: /light-phase\.js$/,
      listeners: [{ local: place, acceptedFast: 0, acceptedTcp: 1 }],
      sockets: [{ ...counts, role: 'server', local: place, peer: { pid: client.pid } }],
    },
  ])
  t.match(of(client), [
    {
      isLoaded: false,
      program: /light-phase\.js$/,
      listeners: [],
      sockets: [
        {
          ...counts,
          role: 'client',
          remote: place,
          reason: 'STARTED_ON_TCP',
          peer: { pid: server.pid, thread: 0 },
        },
      ],
    },
  ])
  const { FASTSOCKETS_START: _, ...env } = plainEnvironment()
  const run = (...args: string[]): { status: number | null; stdout: string } =>
    spawnSync(process.execPath, [CLI, ...args], { env, encoding: 'utf8' })
  const status = run('status', '--pid', String(client.pid))
  t.match(
    status.stdout,
    /relinked, nothing loaded yet; 1 over TCP[\s\S]*\n {2}tcp +client [\s\S]*STARTED_ON_TCP/,
  )
  const explained = run('explain', place)
  t.match(explained, { status: 0, stdout: /tcp\n[\s\S]* start {3}tcp: [\s\S]*STARTED_ON_TCP: / })
  t.ok(explained.stdout.includes(`process ${server.pid} listens there`))
}

t.test('messages that leave a program idle are no reason to load anything, however many', async t => {
  const { FASTSOCKETS_START: _, ...env } = plainEnvironment()
  const server = new Child(t, program('light-phase'), ['server'], relinked({ env }))
  const { port } = await server.receive<{ port: number }>()
  const client = new Child(t, program('light-phase'), ['client', String(port)], relinked({ env }))
  // A third more than the price of loading, if none of it were forgotten.
  for (let sent = 0; sent * WRITE_US < (4 / 3) * START_PRICE_US; sent += 100) {
    t.strictSame(await client.ask({ count: 100 }), { isLoaded: false })
    await delay(100)
  }
  t.strictSame(await server.ask({}), { isLoaded: false }, 'likewise the server')
  await client.kill()
})

for (const stranger of ['server', 'client'] as const)
  t.test(`a peer that is not relinked is no reason to load anything: the ${stranger}`, async t => {
    const { FASTSOCKETS_START: _, ...env } = plainEnvironment()
    const options = (role: string) => (role === stranger ? { env } : relinked({ env }))
    const server = new Child(t, program('light-phase'), ['sink'], options('server'))
    const { port } = await server.receive<{ port: number }>()
    const client = new Child(t, program('light-phase'), ['writer', String(port)], options('client'))
    // Some ten times the price of loading.
    t.strictSame(await client.ask({ size: 16_384, count: 100_000 }), { isLoaded: false })
    t.match(await client.receive(), { hasMoved: false })
    await server.receive()
    t.strictSame(await server.ask({}), { isLoaded: false })
    if (stranger === 'client') return
    const another = new Child(t, program('light-phase'), ['sink'], relinked({ env }))
    const { port: connect } = await another.receive<{ port: number }>()
    t.strictSame(await client.ask({ size: 64, count: 10_000_000, connect }), { isLoaded: true })
    t.match(await client.receive(), { hasMoved: true }, 'a relinked one is')
  })

t.test(
  'a client that writes without a turn of its event loop becomes fast, and so does a server that only reads',
  async t => {
    const { FASTSOCKETS_START: _, ...env } = plainEnvironment()
    const server = new Child(t, program('light-phase'), ['sink'], relinked({ env }))
    const { port } = await server.receive<{ port: number }>()
    const client = new Child(t, program('light-phase'), ['writer', String(port)], relinked({ env }))
    t.strictSame(await client.ask({ size: 64, count: 10_000_000 }), { isLoaded: true })
    const { bytes, ...seen } = await client.receive<{ bytes: number }>()
    t.match(seen, { hasMoved: true, drains: Number })
    t.strictSame(await server.receive(), { bytes }, 'all of it, once')
  },
)

t.test('a client that only reads becomes fast', async t => {
  const { FASTSOCKETS_START: _, ...env } = plainEnvironment()
  const server = new Child(t, program('light-phase'), ['source'], relinked({ env }))
  const { port } = await server.receive<{ port: number }>()
  const client = new Child(t, program('light-phase'), ['reader', String(port)], relinked({ env }))
  const moved = await eventually('the move', () => {
    const sockets = readStatusOf(client.pid)[0]?.sockets ?? []
    return sockets.find(({ transport }) => transport === 'shm')
  })
  await eventually('more', () => (readStatusOf(client.pid)[0]?.sockets[0]?.bytesIn ?? 0) > moved.bytesIn)
  await client.kill()
})

t.test('a UDP socket is no reason to load anything, wherever it sends', async t => {
  const { FASTSOCKETS_START: _, FASTSOCKETS_RENDEZVOUS: _1, ...env } = plainEnvironment()
  const text = `const socket = require('node:dgram').createSocket('udp4')
    socket.send('x', 9, '127.0.0.1', () => socket.send('x', 9, '192.0.2.1', () => {
      socket.close()
      console.log(Object.keys(require.cache).filter(file => file.includes('koffi')).length)
    }))`
  const { stdout } = spawnSync(process.execPath, ['--import', REGISTER.href, '-e', text], {
    env,
    encoding: 'utf8',
  })
  t.equal(stdout, '0\n')
})

t.test('what a program writes to standard output is no reason to load anything', async t => {
  const { FASTSOCKETS_START: _, ...env } = plainEnvironment()
  const stdio = ['ignore', 'pipe', 'pipe', 'ipc'] as const
  const printer = new Child(t, program('light-phase'), ['printer'], relinked({ env, stdio: [...stdio] }))
  printer.process.stdout?.resume()
  t.equal(await printer.receive(), 'printed')
  t.strictSame(await printer.ask({}), { isLoaded: false })
  await printer.kill()
})

for (const kind of ['file', 'abstract'])
  t.test(`a connection over a unix path becomes fast, ${kind}`, async t => {
    const folder = mkdtempSync(join(tmpdir(), 'light-'))
    t.teardown(() => rmSync(folder, { recursive: true }))
    const { FASTSOCKETS_START: _, ...env } = plainEnvironment()
    const path = kind === 'file' ? join(folder, 'light.sock') : `@light-${process.pid}`
    const server = new Child(t, program('light-phase'), ['server', path], relinked({ env }))
    await server.receive()
    const client = new Child(t, program('light-phase'), ['client', path], relinked({ env }))
    t.strictSame(await client.ask({ count: 200 }), { isLoaded: false }, 'for a while')
    const moved = { isLoaded: true, promoted: 1, sockets: [{ transport: 'shm' }] }
    await eventually('the move', async () => {
      await client.ask({ count: 500 })
      return readStatusOf(client.pid)[0]?.promoted === 1
    })
    t.match(readStatusOf(client.pid), [moved])
    t.match(readStatusOf(server.pid), [moved])
    await client.ask({ count: 500 })
    await client.kill()
    await eventually('its end at the server', () => readStatusOf(server.pid)[0]?.sockets.length === 0)
  })
