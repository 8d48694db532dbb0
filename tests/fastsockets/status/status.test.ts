/** What `status` shows of relinked processes, and to which users. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { connect } from '../../../fastsockets/raw/index.ts'
import { readAllStatus, readStatusOf } from '../../../fastsockets/status/read-status.ts'
import { CONSUMED_DUE, WINDOW } from '../../../fastsockets/stream/stream-layout.ts'
import { Child, plainEnvironment } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'
import { skipHere } from '../../support/skip.ts'
import { eventually, until, withWatchdog } from '../../support/until.ts'

const CLI = fileURLToPath(new URL('../../../fastsockets/cli/main.js', import.meta.url))
const NOBODY = 65534
/** More than fits into the window. */
const MORE = 100_000

/** Of this process, by the peer's port. */
const ownSocketTo = (port: number) =>
  readStatusOf(process.pid)[0]?.sockets.find(({ remote }) => remote.endsWith(`:${port}`))
const sendQueueTo = (port: number) => ownSocketTo(port)?.sendQueue

async function startServer(t: Test, behaviour: string): Promise<{ server: Child; port: number }> {
  const server = new Child(t, program('server'), [behaviour], relinked())
  return { server, port: (await server.receive<{ port: number }>()).port }
}

t.test('a relinked process is seen, with its listener, its sockets and what they count', async t => {
  const { server, port } = await startServer(t, 'echo')
  const client = new Child(t, program('busy'), [String(port)], relinked())
  await client.receive()
  // The answer may be here before its sender has counted it.
  const status = await eventually('the count', () => {
    const [status] = readStatusOf(server.pid)
    return status?.bytesOut === 1000 && status.sockets[0]?.bytesOut === 1000 && status
  })
  t.match(status, {
    pid: server.pid,
    thread: 0,
    program: /programs\/server\.js$/,
    opened: 1,
    bytesIn: 1000,
    bytesOut: 1000,
    fallbacks: {},
    listeners: [{ state: 'LISTEN', local: `127.0.0.1:${port}`, acceptedFast: 1, acceptedTcp: 0 }],
    sockets: [
      {
        kind: 'net',
        transport: 'shm',
        role: 'server',
        local: `127.0.0.1:${port}`,
        bytesIn: 1000,
        bytesOut: 1000,
      },
    ],
  })
  t.ok((status.listeners[0]?.hashedPort ?? 0) > 0)
  t.ok((status.poller.doorbells ?? 0) + (status.poller.messages ?? 0) > 0)
  t.ok(
    readAllStatus().some(({ pid }) => pid === server.pid),
    'and among all',
  )
})

t.test('a process that is busy, or stopped, is seen all the same', async t => {
  const { server, port } = await startServer(t, 'echo')
  const busy = new Child(t, program('busy'), [String(port)], relinked())
  await busy.receive()
  t.match(readStatusOf(busy.pid), [
    {
      sockets: [{ role: 'client', remote: `127.0.0.1:${port}`, bytesIn: 1000, bytesOut: 1000, recvQueue: 0 }],
    },
  ])
  server.process.kill('SIGSTOP')
  t.match(readStatusOf(server.pid), [{ sockets: [{ bytesIn: 1000 }] }])
})

t.test('a reader that stops shows as Recv-Q there, and as missing credit here', async t => {
  const { server, port } = await startServer(t, 'hold')
  const socket = await connect({ port, host: '127.0.0.1' })
  t.teardown(() => socket.close())
  let sent = 0
  for (let refused = 0; refused < 1000; ) {
    const length = socket.trySend(Buffer.alloc(10_000))
    sent += length
    refused = length === 0 ? refused + 1 : 0
  }
  // Arrived bytes are on their way to the program, until it turns out that the program does not read.
  const there = await until('all bytes to arrive, most of them in the receive buffer', () => {
    const [seen] = readStatusOf(server.pid)[0]?.sockets ?? []
    return seen?.bytesIn === sent && (seen.directShare ?? 1) < 0.5 && seen
  })
  // The first bytes may have been read before the program stopped.
  t.ok((there.recvQueue ?? 0) > sent / 2, `${there.recvQueue} of ${sent}`)
  const [here] = readStatusOf(process.pid)
  t.match(
    here?.sockets.find(({ remote }) => remote.endsWith(`:${port}`)),
    { kind: 'raw', transport: 'shm', state: 'ESTAB', creditLeft: 0, bytesOut: sent, sendQueue: WINDOW },
  )
  const waiting = t.rejects(socket.send(Buffer.alloc(MORE)), { code: 'ECANCELED' })
  t.equal(sendQueueTo(port), WINDOW + MORE, 'what waits here is in the queue, too')
  socket.close()
  await waiting
})

t.test('once the peer has taken what was written, the queue is short again', async t => {
  const { port } = await startServer(t, 'sink')
  const socket = await connect({ port, host: '127.0.0.1' })
  t.teardown(() => socket.close())
  const sent = socket.send(Buffer.alloc(4 * WINDOW))
  t.ok((sendQueueTo(port) ?? 0) > WINDOW, `${sendQueueTo(port)} at first`)
  await sent
  // The peer does not tell of every byte that it has taken.
  await until('the queue to be short', () => (sendQueueTo(port) ?? WINDOW) < CONSUMED_DUE)
})

t.test('of two ends of one host both are asked: an idle connection has nothing in its queue', async t => {
  const { server, port } = await startServer(t, 'sink')
  const client = new Child(t, program('busy'), [String(port)], relinked())
  const raw = await connect({ port, host: '127.0.0.1' })
  t.teardown(() => raw.close())
  // Less than what the peer's half of the window would tell of.
  await raw.send(Buffer.alloc(MORE))
  const all = await eventually('all to be taken', () => {
    const seen = readAllStatus()
    const there = seen.find(({ pid }) => pid === server.pid)
    const isTaken = there?.bytesIn === MORE + 1000 && there.sockets.every(({ recvQueue }) => recvQueue === 0)
    // Each process notes what it has done at the end of its turn.
    const isNoted = seen.some(({ pid, bytesOut }) => pid === client.pid && bytesOut === 1000)
    return isTaken && isNoted && seen
  })
  const queueOf = (pid: number): unknown =>
    all
      .find(one => one.pid === pid && one.thread === 0)
      ?.sockets.filter(({ remote }) => remote.endsWith(`:${port}`))
      .map(({ sendQueue, bytesOut }) => ({ sendQueue, bytesOut }))
  t.strictSame(queueOf(process.pid), [{ sendQueue: 0, bytesOut: MORE }])
  t.strictSame(queueOf(client.pid), [{ sendQueue: 0, bytesOut: 1000 }])
  t.equal(sendQueueTo(port), MORE, 'by itself this process knows what it was told')
})

t.test('who has ended shows as the state, at both ends', async t => {
  // It does not read all of it, and so does not see the end.
  const { server, port } = await startServer(t, 'hold')
  const socket = await connect({ port, host: '127.0.0.1' })
  t.teardown(() => socket.close())
  const here = () => ownSocketTo(port)?.state
  const there = () => readStatusOf(server.pid)[0]?.sockets[0]?.state
  t.equal(here(), 'ESTAB')
  await eventually('the server to have accepted', () => there() === 'ESTAB')
  await socket.send(Buffer.alloc(MORE))
  socket.shutdown()
  t.equal(here(), 'FIN-WAIT')
  await eventually('the end to arrive', () => there() === 'CLOSE-WAIT')
  await server.kill()
  await until('the end of both', () => here() === 'CLOSING')
})

t.test('sockets on TCP are seen with their reason, and fallbacks are counted', async t => {
  const plain = new Child(t, program('server'), ['hold'])
  const { port } = await plain.receive<{ port: number }>()
  const client = new Child(t, program('client'), [String(port)], relinked())
  await client.receive()
  await eventually('the row', () => readStatusOf(client.pid)[0]?.sockets.length === 1)
  t.match(readStatusOf(client.pid), [
    {
      fallbacks: { NOT_RELINKED: 1 },
      sockets: [
        {
          kind: 'tcp',
          transport: 'tcp',
          role: 'client',
          reason: 'NOT_RELINKED',
          remote: `127.0.0.1:${port}`,
        },
      ],
    },
  ])
  plain.process.kill('SIGKILL')
  await eventually('the row to go', () => readStatusOf(client.pid)[0]?.sockets.length === 0)

  const { server, port: relinkedPort } = await startServer(t, 'hold')
  const stranger = new Child(t, program('client'), [String(relinkedPort)])
  await stranger.receive()
  await until('the row of the server', () => readStatusOf(server.pid)[0]?.sockets.length === 1)
  t.match(readStatusOf(server.pid), [
    {
      fallbacks: { ACCEPTED: 1 },
      listeners: [{ acceptedTcp: 1 }],
      sockets: [{ kind: 'tcp', role: 'server', reason: 'ACCEPTED', local: `127.0.0.1:${relinkedPort}` }],
    },
  ])
})

t.test('sockets on TCP show their bytes', async t => {
  const { server, port } = await startServer(t, 'sink')
  const stranger = new Child(t, program('client'), [String(port), 'flood'])
  await stranger.receive()
  const bytesIn = await eventually('bytes to be counted there', () => {
    const [socket] = readStatusOf(server.pid)[0]?.sockets ?? []
    return socket?.kind === 'tcp' && socket.bytesIn
  })
  await eventually('more', () => (readStatusOf(server.pid)[0]?.sockets[0]?.bytesIn ?? 0) > bytesIn)
  t.equal(readStatusOf(server.pid)[0]?.bytesIn, 0, 'not among those of fast sockets')
  t.equal(readStatusOf(server.pid)[0]?.sockets[0]?.sendQueue, undefined)
  await stranger.kill()

  const plain = new Child(t, program('server'), ['sink'])
  const client = new Child(
    t,
    program('client'),
    [String((await plain.receive<{ port: number }>()).port), 'flood'],
    relinked(),
  )
  await client.receive()
  await eventually('bytes to be counted here', () => {
    const [socket] = readStatusOf(client.pid)[0]?.sockets ?? []
    return socket?.kind === 'tcp' && socket.bytesOut > 0
  })
  const table = spawnSync(process.execPath, [CLI, 'status', '--pid', String(client.pid)], {
    env: plainEnvironment(),
    encoding: 'utf8',
  })
  t.match(table.stdout, /\n {2}tcp +client +- +- +- .* NOT_RELINKED/)
  t.match(table.stdout, /\n {2}tcp +client .*:\d+ +0 +\d\S*[kMG] +- +- .* NOT_RELINKED/)
})

t.test('threads are seen each by itself, and are gone with it', async t => {
  const main = new Child(t, program('workers'), ['serve'], relinked())
  await main.receive()
  t.strictSame(
    readStatusOf(main.pid).map(({ thread }) => thread > 0),
    [false, true],
  )
  t.match(await main.ask({}), { terminated: true })
  t.strictSame(
    readStatusOf(main.pid).map(({ thread }) => thread),
    [0],
  )
  await main.ask({})
  await main.end()
  t.strictSame(readStatusOf(main.pid), [], 'and with the process')
})

t.test('nothing is left of a process that was killed', async t => {
  const { server } = await startServer(t, 'echo')
  const files = (): string[] =>
    [...readdirSync('/dev/shm'), ...readdirSync('/tmp')].filter(name => /fastsockets-status/.test(name))
  t.equal(readStatusOf(server.pid).length, 1)
  await server.kill()
  t.strictSame(readStatusOf(server.pid), [])
  t.notOk(readAllStatus().some(({ pid }) => pid === server.pid))
  t.strictSame(files(), [])
})

t.test('another user cannot read it', async t => {
  if (process.getuid?.() !== 0) return skipHere(t, 'another user (needs root to become one)')
  const { server } = await startServer(t, 'echo')
  const folder = `/proc/${server.pid}/fd`
  const page = readdirSync(folder).find(fd => readlinkSync(`${folder}/${fd}`).includes('fastsockets-status'))
  t.ok(page, 'the page is there')
  const script = `try { require('fs').openSync(${JSON.stringify(`${folder}/${page}`)}, 'r'); console.log('open') } catch (error) { console.log(error.code) }`
  const asNobody = spawnSync(process.execPath, ['-e', script], {
    uid: NOBODY,
    gid: NOBODY,
    env: plainEnvironment(),
    encoding: 'utf8',
  })
  t.equal(asNobody.stdout.trim(), 'EACCES')
})

t.test('fastsockets status', async t => {
  const { server, port } = await startServer(t, 'trickle')
  const client = new Child(t, program('client'), [String(port)], relinked())
  await client.receive()
  const plain = new Child(t, program('client'), [String(port)])
  await plain.receive()
  await eventually('the server to have accepted', () => readStatusOf(server.pid)[0]?.sockets.length === 2)
  const env = plainEnvironment()
  const table = spawnSync(process.execPath, [CLI, 'status', '--pid', String(server.pid)], {
    env,
    encoding: 'utf8',
  })
  t.equal(table.status, 0)
  t.match(table.stdout, new RegExp(`^${server.pid}  .*server\\.js\n`))
  t.match(table.stdout, /listens on 127\.0\.0\.1:\d+, hashed port \d+; accepted 1 fast, 1 over TCP\n/)
  t.match(table.stdout, /\n {2}shm +server +ESTAB +\d\S* +\d\S* +127\.0\.0\.1:\d+ /)
  t.match(table.stdout, /\n {2}tcp +server +- +- +- +127\.0\.0\.1:\d+ .* ACCEPTED/, 'the kernel knows')
  await plain.kill()

  const watch = spawn(process.execPath, [CLI, 'status', '--json', '--watch', '0.1'], { env })
  const lines = createInterface({ input: watch.stdout })
  for (let i = 0; i < 3; i++) {
    const [line] = await once(lines, 'line')
    const all = JSON.parse(String(line)) as { pid: number; outRate: number; sockets: { outRate: number }[] }[]
    const own = all.find(({ pid }) => pid === server.pid)
    t.ok((own?.sockets[0]?.outRate ?? 0) > 0, `${own?.sockets[0]?.outRate} bytes/s`)
  }
  watch.kill('SIGKILL')
  const nobody = spawnSync(process.execPath, [CLI, 'status', '--pid', '1'], { env, encoding: 'utf8' })
  t.match(nobody, { status: 0, stdout: 'Process 1 is no relinked process of this user.\n' })
})

t.test('status names the process at the other end, and shows what it is asked for', async t => {
  const { server, port } = await startServer(t, 'echo')
  const client = new Child(t, program('client'), [String(port)], relinked())
  await client.receive()
  const plain = new Child(t, program('client'), [String(port)])
  await plain.receive()
  await eventually('the server to have accepted', () => readStatusOf(server.pid)[0]?.sockets.length === 2)
  const env = plainEnvironment()
  const status = (...args: string[]) =>
    spawnSync(process.execPath, [CLI, 'status', ...args], { env, encoding: 'utf8' }).stdout
  type Shown = { pid: number; listeners: object[]; sockets: { transport: string; peer: object }[] }[]
  const json = (...args: string[]) => JSON.parse(status('--json', ...args)) as Shown
  const uid = process.geteuid?.()

  const atServer = json('--port', String(port)).find(({ pid }) => pid === server.pid)
  const peers = Object.fromEntries(atServer?.sockets.map(({ transport, peer }) => [transport, peer]) ?? [])
  t.match(peers.shm, { pid: client.pid, thread: 0, program: /client\.js$/, uid })
  t.match(peers.tcp, { pid: plain.pid, program: /client\.js /, uid, thread: undefined })
  t.match(json('--port', String(port)).find(({ pid }) => pid === client.pid)?.sockets, [
    { peer: { pid: server.pid, program: /server\.js$/ } },
  ])

  t.strictSame(
    json('--port', String(port))
      .map(({ pid }) => pid)
      .sort(),
    [client.pid, server.pid].sort(),
    'those of the port',
  )
  const overTcp = json('--wire', 'tcp', '--port', String(port))
  t.match(overTcp, [{ pid: server.pid, listeners: [], sockets: [{ transport: 'tcp' }] }])
  t.equal(overTcp[0]?.sockets.length, 1)
  t.strictSame(
    json('--program', 'programs/client.js', '--port', String(port)).map(({ pid }) => pid),
    [client.pid],
  )
  t.match(status('--program', 'no-such-program'), /^Nothing .* is like that/)
  t.match(status('--pid', String(server.pid)), new RegExp(`client\\.js \\(${client.pid}\\)`))
  const tree = status('--tree', '--port', String(port))
  t.match(tree, new RegExp(`server\\.js \\[${server.pid}\\] {2}\\(listens on 127.0.0.1:${port}\\)`))
  t.match(tree, new RegExp(`← .*client\\.js .*\\[${plain.pid}\\] {2}1 tcp \\(ACCEPTED\\): in`))
  t.match(tree, new RegExp(`→ 127.0.0.1:${port} {2}.*server\\.js \\[${server.pid}\\] {2}1 shm: in`))
  for (const wrong of [
    ['--port', '0'],
    ['--wire', 'carrier-pigeon'],
  ])
    t.equal(spawnSync(process.execPath, [CLI, 'status', ...wrong], { env }).status, 2, wrong.join(' '))
})

t.test('--watch looks at once, however long it then pauses, and Ctrl-C is its ordinary end', async t => {
  const { server } = await startServer(t, 'hold')
  const args = [CLI, 'status', '--json', '--watch', '3600', '--pid', String(server.pid)]
  const watch = spawn(process.execPath, args, { env: plainEnvironment() })
  t.teardown(() => void watch.kill('SIGKILL'))
  const [line] = await withWatchdog('a line', once(createInterface({ input: watch.stdout }), 'line'))
  t.match(JSON.parse(String(line)), [{ pid: server.pid, inRate: 0 }])
  watch.kill('SIGINT')
  t.strictSame(await withWatchdog('its end', once(watch, 'exit')), [0, null])
})

t.test('listeners that only TCP reaches are there, with the reason, and count accepted clients', async t => {
  const policy = join(t.testdir({ 'policy.yaml': 'default: tcp\n' }), 'policy.yaml')
  const options = relinked({ env: { ...plainEnvironment(), FASTSOCKETS_POLICY: policy } })
  const server = new Child(t, program('server'), ['echo'], options)
  const { port } = await server.receive<{ port: number }>()
  const socket = net.connect(port, '127.0.0.1')
  t.teardown(() => void socket.destroy())
  await server.receive()
  const expected = { state: 'LISTEN', local: `127.0.0.1:${port}`, acceptedFast: 0, acceptedTcp: 1 }
  await eventually('the row', () => readStatusOf(server.pid)[0]?.listeners[0]?.acceptedTcp === 1)
  t.match(readStatusOf(server.pid)[0]?.listeners, [{ ...expected, reason: 'POLICY' }])
})

t.test('listeners and sockets on unix paths have the names of these', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'fastsockets-status-of-unix-paths-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const names = [
    `${folder}/a.sock`,
    `${folder}/with-a-long-name-that-is-cut.sock`,
    `@fastsockets-status-${process.pid}`,
  ]
  for (const name of names) {
    const server = new Child(t, program('unix'), ['server', name], relinked())
    await server.receive()
    const client = new Child(t, program('unix'), ['client', name], relinked())
    await client.receive()
    const [status] = await eventually('its row', () => {
      const all = readStatusOf(server.pid)
      return all[0]?.sockets.length === 1 && all
    })
    const shown = name.length > 64 ? `...${name.slice(-61)}` : name
    t.match(status?.listeners, [{ local: shown, acceptedFast: 1, reason: undefined, hashedPort: undefined }])
    t.match(status?.sockets, [{ transport: 'shm', role: 'server', local: shown, remote: '' }])
    t.match(readStatusOf(client.pid)[0]?.sockets, [{ role: 'client', local: '', remote: shown }])
    const args = [CLI, 'status', '--pid', String(server.pid)]
    const table = spawnSync(process.execPath, args, { env: plainEnvironment(), encoding: 'utf8' })
    t.ok(table.stdout.includes(`  listens on ${shown}; accepted 1 fast, 0 over TCP\n`), table.stdout)
    await client.kill()
  }
  const plain = new Child(t, program('unix'), ['server', '@fastsockets-plain'])
  await plain.receive()
  const client = new Child(t, program('unix'), ['client', '@fastsockets-plain'], relinked())
  await client.receive()
  await eventually('its row', () => readStatusOf(client.pid)[0]?.sockets[0]?.remote === '@fastsockets-plain')
})

t.test('--watch ends when its reader has gone', async t => {
  const watch = spawn(process.execPath, [CLI, 'status', '--json', '--watch', '0.1'], {
    env: plainEnvironment(),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => watch.kill('SIGKILL'))
  await once(watch.stdout, 'data')
  watch.stdout.destroy()
  const [code] = await withWatchdog('its end', once(watch, 'exit'))
  t.equal(code, 0)
})
