/** Unmodified socket programs between two hosts, as far as they can tell: everything goes over the RDMA device. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Registry } from 'prom-client'
import t, { type Test } from 'tap'
import net, { transportOf } from '../../../fastsockets/index.ts'
import { registerMetrics } from '../../../fastsockets/metrics.ts'
import { describeDevice, type VerbsCounters, verbsCounters } from '../../../nic/index.ts'
import { PAGE_SIZE, RING_SIZE_MIN } from '../../../nic/verbs/frame-layout.ts'
import { requireAdapter } from '../../../nic/verbs/open-adapter.ts'
import { eventually, withWatchdog } from '../../support/until.ts'
import { type Program, startElsewhere } from '../other-host.ts'
import { newSum, patternedMiB } from '../patterned.ts'
import { receiverNotReadyCount } from '../receiver-not-ready.ts'

const HOST = '10.77.0.1'
/** In a network namespace, and without an RDMA device. */
const FAR_HOST = '10.77.0.2'
const STALLING_HOST = fileURLToPath(new URL('../programs/stalling-host.js', import.meta.url))
const CLIENT = new URL('../programs/socket-client.js', import.meta.url)
const SERVER = new URL('../programs/socket-server.js', import.meta.url)
const MIB_EACH_WAY = Number(process.env.FASTSOCKETS_RDMA_MIB) || 256
const CONNECTIONS = 200
const TIMES_WRITTEN = 6
/** Of many small writes. */
const PIECE = 4096
/** What a server may pin that is held to it: root without the capability to pin more. */
const PINNABLE_KIB = 4096
const HELD = 'setpriv --inh-caps -ipc_lock --bounding-set -ipc_lock'
/** What each of two clients is sent there: more than both may have pinned. */
const MIB_EACH = 3
const LULL_MS = 1000
const MIB_SMALL = 8
const WAIT_MS_MAX = 120_000

interface Started {
  readonly program: Program
  readonly port: number
}

async function startServer(t: Test, preparation?: string): Promise<Started> {
  const program = startElsewhere(t, SERVER, [], {}, preparation)
  const { port } = await program.next<{ port: number }>()
  return { program, port }
}

async function dial(port: number): Promise<Socket> {
  const socket = net.connect({ port, host: HOST, allowHalfOpen: true })
  await withWatchdog('the connection', once(socket, 'connect'), WAIT_MS_MAX)
  return socket
}

async function readAll(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = []
  socket.on('data', bytes => chunks.push(bytes))
  await withWatchdog('the end', once(socket, 'end'), WAIT_MS_MAX)
  return Buffer.concat(chunks)
}

// To open the device takes an emulator longer than a server waits for a caller.
t.comment(describeDevice())
const [{ program, port }, victim, leaver] = await Promise.all([
  startServer(t),
  startServer(t),
  startServer(t),
])

await t.test('an echo goes over verbs, and both sides see the addresses', async t => {
  const socket = await dial(port)
  t.equal(transportOf(socket).transport, 'verbs', JSON.stringify(transportOf(socket)))
  t.equal(socket.remoteAddress, HOST)
  t.equal(socket.remotePort, port)
  socket.end('ehello')
  t.equal((await readAll(socket)).toString(), 'hello')
})

await t.test('half-close: the answer comes after the end of the question', async t => {
  const socket = await dial(port)
  socket.end('hquestion')
  const answer = JSON.parse((await readAll(socket)).toString())
  t.match(answer, {
    sum: newSum().update('question').digest('hex'),
    transport: 'verbs',
    from: HOST,
  })
})

await t.test(`${MIB_EACH_WAY} MiB go there and come back unharmed, both ways at once`, async t => {
  const up = await dial(port)
  const down = await dial(port)
  const expected = newSum()
  const received = newSum()
  down.write(Buffer.from([0x73, MIB_EACH_WAY >> 8, MIB_EACH_WAY & 0xff]))
  down.on('data', bytes => received.update(bytes))
  const isDown = withWatchdog('the way down', once(down, 'end'), WAIT_MS_MAX)
  const answer = readAll(up)
  up.write('h')
  for (let i = 0; i < MIB_EACH_WAY; i++) {
    const bytes = patternedMiB(i)
    expected.update(bytes)
    if (!up.write(bytes)) await withWatchdog('room', once(up, 'drain'), WAIT_MS_MAX)
  }
  up.end()
  await isDown
  down.end()
  const sum = expected.digest('hex')
  t.equal(JSON.parse((await answer).toString()).sum, sum)
  t.equal(received.digest('hex'), sum)
})

await t.test(`${CONNECTIONS} connections share one queue pair`, async t => {
  const before = (verbsCounters() as VerbsCounters).registrations
  const sockets = await Promise.all(Array.from({ length: CONNECTIONS }, () => dial(port)))
  t.ok(sockets.every(socket => transportOf(socket).transport === 'verbs'))
  const answers = sockets.map(readAll)
  sockets.forEach((socket, i) => {
    socket.end(`e${i}`)
  })
  t.strictSame(
    (await Promise.all(answers)).map(String),
    sockets.map((_, i) => `${i}`),
  )
  t.equal((verbsCounters() as VerbsCounters).registrations, before, 'no memory was registered for them')
})

await t.test('no memory is registered on the way of the bytes', async t => {
  const socket = await dial(port)
  socket.write('e')
  const before = (verbsCounters() as VerbsCounters).registrations
  for (let i = 0; i < 20; i++) {
    socket.write(Buffer.alloc(10_000, i))
    for (let got = 0; got < 10_000; ) got += ((await once(socket, 'data'))[0] as Buffer).length
  }
  t.equal((verbsCounters() as VerbsCounters).registrations, before)
  socket.destroy()
})

await t.test('prom-client shows what the driver has done, and what it has pinned', async t => {
  const registry = new Registry()
  registerMetrics({ registry })
  const text = await registry.metrics()
  const counters = [...text.matchAll(/^fastsockets_verbs_total\{counter="(\w+)"\} (\d+)$/gm)]
  t.strictSame(
    counters.map(([, name]) => name),
    Object.keys(verbsCounters() as VerbsCounters),
  )
  t.ok(Number(counters.find(([, name]) => name === 'postSends')?.[2]) > CONNECTIONS)
  const rings = /^fastsockets_verbs_pinned_bytes\{use="rings"\} (\d+)$/m.exec(text)?.[1]
  t.ok(Number(rings) >= 2 * RING_SIZE_MIN, `${rings} bytes`)
  t.match(text, /^fastsockets_verbs_pinned_bytes\{use="registrations"\} \d+$/m)
})

/** Of the server. */
async function serverCounters(): Promise<VerbsCounters> {
  program.tell('counters')
  return (await program.next<{ counters: VerbsCounters }>()).counters
}

await t.test('large writes are fetched by the peer, from copies that belong to the socket', async t => {
  const socket = await dial(port)
  socket.write('h')
  const answer = readAll(socket)
  const bytes = patternedMiB(7)
  const expected = newSum()
  const before = verbsCounters()?.registrations as number
  const { registrations, deregistrations } = await serverCounters()
  for (let i = 0; i < TIMES_WRITTEN; i++) {
    expected.update(bytes)
    await new Promise(resolve => socket.write(bytes, resolve))
  }
  const isFetched = () => transportOf(socket).counts?.zcopyBytesOut === TIMES_WRITTEN * bytes.length
  await eventually('the last fetch', isFetched)
  const registered = (verbsCounters()?.registrations as number) - before
  t.ok(registered > 0 && registered <= TIMES_WRITTEN, `${registered} copies were registered`)
  socket.end()
  t.equal(JSON.parse((await answer).toString()).sum, expected.digest('hex'))
  const after = await serverCounters()
  t.ok(after.registrations > registrations, 'the server has fetched')
  // Less, if what was there before has gone meanwhile.
  const held = after.registrations - after.deregistrations
  t.ok(held <= registrations - deregistrations, 'into memory that it does not hold on to')
})

await t.test('a server that stands still uses up the credit, and goes on where it was', async t => {
  const socket = await dial(port)
  socket.write('h')
  const answer = readAll(socket)
  const bytes = patternedMiB(3)
  const expected = newSum()
  const { pid } = program.process
  process.kill(pid as number, 'SIGSTOP')
  t.teardown(() => process.kill(pid as number, 'SIGCONT'))
  // Small enough to be copied, each by itself: the ring, its receives and the window are used up.
  for (let at = 0; at < bytes.length; at += PIECE) {
    socket.write(bytes.subarray(at, at + PIECE))
    await nextTurn()
  }
  for (let i = 0; i < 4; i++) socket.write(bytes.subarray(i))
  t.ok(socket.writableLength > 0, 'there is no credit left')
  process.kill(pid as number, 'SIGCONT')
  expected.update(bytes)
  for (let i = 0; i < 4; i++) expected.update(bytes.subarray(i))
  socket.end()
  t.equal(JSON.parse((await answer).toString()).sum, expected.digest('hex'))
})

await t.test('a server that may pin little has small rings, and all arrives', async t => {
  const { port } = await startServer(t, `ulimit -l ${PINNABLE_KIB}; exec ${HELD}`)
  const { slabBytes } = requireAdapter()
  const socket = await dial(port)
  t.equal(transportOf(socket).transport, 'verbs', JSON.stringify(transportOf(socket)))
  t.equal(requireAdapter().slabBytes - slabBytes, 2 * (RING_SIZE_MIN + PAGE_SIZE))
  socket.write('h')
  const answer = readAll(socket)
  const expected = newSum()
  // Some pieces are fetched by the server, if it can, and some are copied into the ring.
  for (let i = 0; i < MIB_SMALL; i++) {
    const bytes = patternedMiB(i)
    expected.update(bytes)
    for (let at = 0; at < bytes.length; at += bytes.length >> i) {
      const piece = bytes.subarray(at, at + (bytes.length >> i))
      if (!socket.write(piece)) await withWatchdog('room', once(socket, 'drain'), WAIT_MS_MAX)
    }
  }
  socket.end()
  t.equal(JSON.parse((await answer).toString()).sum, expected.digest('hex'))
})

await t.test('what a server cannot pin for two clients at once is copied', async t => {
  const { port } = await startServer(t, `ulimit -l ${PINNABLE_KIB}; exec ${HELD}`)
  const sockets = [await dial(port), await dial(port)]
  // Neither side reads yet, so both are on offer, or wait.
  for (const socket of sockets) socket.pause().write(Buffer.from([0x62, 0, MIB_EACH]))
  await sleep(LULL_MS)
  const expected = newSum()
  for (let i = 0; i < MIB_EACH; i++) expected.update(patternedMiB(i))
  const sum = expected.digest('hex')
  const received = await Promise.all(sockets.map(socket => readAll(socket.resume())))
  t.strictSame(
    received.map(bytes => newSum().update(bytes).digest('hex')),
    [sum, sum],
  )
})

await t.test('a reset is ECONNRESET', async t => {
  const socket = await dial(port)
  socket.write('x')
  const [error] = await withWatchdog('the error', once(socket, 'error'), WAIT_MS_MAX)
  t.equal(error.code, 'ECONNRESET')
})

await t.test('a server that is killed ends its connections at once', async t => {
  const socket = await dial(victim.port)
  t.equal(transportOf(socket).transport, 'verbs')
  let isOver = false
  for (const event of ['end', 'error'])
    socket.on(event, () => {
      isOver = true
    })
  socket.resume()
  socket.write('e')
  victim.program.process.kill('SIGKILL')
  await eventually('the end', () => isOver)
  t.ok(isOver)
  socket.destroy()
})

await t.test('a client that is killed ends its connections at once', async t => {
  const server = net.createServer()
  server.listen(0, HOST)
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const accepted = once(server, 'connection')
  const client = startElsewhere(t, CLIENT, [HOST, `${port}`])
  const [socket] = (await withWatchdog('the client', accepted, WAIT_MS_MAX)) as [Socket]
  t.equal(transportOf(socket).transport, 'verbs', JSON.stringify(transportOf(socket)))
  let isOver = false
  for (const event of ['end', 'error'])
    socket.on(event, () => {
      isOver = true
    })
  const [first] = await withWatchdog('its word', once(socket, 'data'), WAIT_MS_MAX)
  t.equal(String(first), 'hello')
  client.process.kill('SIGKILL')
  await eventually('the end', () => isOver)
  t.ok(isOver)
  socket.destroy()
})

await t.test('what a server has written before it exits is delivered', async t => {
  const socket = await dial(leaver.port)
  socket.write(Buffer.from([0x73, 0, 1]))
  const bytes = await readAll(socket)
  t.ok(bytes.equals(patternedMiB(0)))
  leaver.program.tell('exit')
  await once(leaver.program.process, 'exit')
})

await t.test('no receiver was ever found without a receive', async t => {
  t.comment(JSON.stringify(await serverCounters()))
  t.equal(receiverNotReadyCount(), 0)
})

/** The wire of a new connection, which may fail. */
async function wireTo(host: string, port: number): Promise<ReturnType<typeof transportOf>> {
  const socket = net.connect({ port, host })
  socket.on('error', () => {})
  const found = await eventually('TCP', () => {
    const wire = transportOf(socket)
    return wire.transport === 'connecting' ? undefined : wire
  })
  socket.destroy()
  return found
}

await t.test('a host that does not answer costs little, and is remembered', async t => {
  process.env.FASTSOCKETS_GREETING_TIMEOUT_MS = '50'
  t.match(await wireTo('10.77.0.9', 9), { transport: 'tcp', reason: { code: 'SILENT' } })
  t.match(await wireTo('10.77.0.9', 9), { reason: { text: /a moment ago/ } })
})

await t.test('a host that greets and then stalls is silent all the same, and is remembered', async t => {
  // Long enough that the greeting is heard; what comes after it has no time of its own.
  process.env.FASTSOCKETS_GREETING_TIMEOUT_MS = '4000'
  const host = spawn('ip', ['netns', 'exec', 'far', process.execPath, STALLING_HOST, FAR_HOST, '7001'])
  t.teardown(() => host.kill('SIGKILL'))
  await withWatchdog('the other host', once(host.stdout, 'data'), WAIT_MS_MAX)
  t.match(await wireTo(FAR_HOST, 7001), {
    transport: 'tcp',
    reason: { code: 'SILENT', text: /after the greeting/ },
  })
  t.match(await wireTo(FAR_HOST, 7002), { reason: { text: /a moment ago/ } })
})
