/** `fastsockets perf`: real servers and clients, over the wires that they must use. The shape of reports, not their figures. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import net from 'node:net'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import {
  decodeAsk,
  decodeHello,
  encodeAsk,
  encodeHello,
  PERF_MESSAGE_SIZE,
} from '../../../fastsockets/cli/perf/perf-layout.ts'
import { describeReport, type PerfReport } from '../../../fastsockets/cli/perf/perf-report.ts'
import { readStatusOf } from '../../../fastsockets/status/read-status.ts'
import { Child, plainEnvironment } from '../../support/child.ts'
import { eventually, withWatchdog } from '../../support/until.ts'

const CLI = fileURLToPath(new URL('../../../fastsockets/cli/main.js', import.meta.url))
const SHORT = ['--seconds', '0.05']
/** For Fast Sockets it is a platform on which there is no C library to call. */
const WITHOUT_LIBRARY = "data:text/javascript,Object.defineProperty(process,'platform',{value:'plan9'})"
const NO_FAST = { FASTSOCKETS_DISABLE: '1' }

interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

function perf(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  return new Promise(resolve => {
    const options = { env: { ...plainEnvironment(), ...env } }
    execFile(process.execPath, [CLI, 'perf', ...args], options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr })
    })
  })
}

async function startServer(t: Test, transport: string): Promise<{ server: ChildProcess; target: string }> {
  const args = [CLI, 'perf', 'server', '127.0.0.1:0', '--transport', transport, '--json']
  const server = spawn(process.execPath, args, {
    env: plainEnvironment(),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => server.kill('SIGKILL'))
  const lines = createInterface({ input: server.stdout })
  const [line] = (await withWatchdog('the server', once(lines, 'line'))) as [string]
  const ready = JSON.parse(line) as { host: string; port: number; transport: string }
  t.match(ready, { host: '127.0.0.1', transport })
  return { server, target: `127.0.0.1:${ready.port}` }
}

/** What its connections have received. */
function bytesOf(pid: number): number {
  const sockets = readStatusOf(pid).flatMap(({ sockets }) => sockets)
  return sockets.reduce((sum, { bytesIn }) => sum + bytesIn, 0)
}

async function report(
  t: Test,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  length: readonly string[] = SHORT,
): Promise<PerfReport> {
  const { code, stdout, stderr } = await perf([...args, ...length, '--json'], env)
  t.equal(code, 0, stderr)
  return JSON.parse(stdout) as PerfReport
}

t.test('each test says what it measured, over which wire, and why not over a faster one', async t => {
  const [raw, ordinary] = await Promise.all([startServer(t, 'raw'), startServer(t, 'net')])
  const net = ['--transport', 'net']
  const [pingPong, polled, throughput, connect, overNet, overTcp] = await Promise.all([
    report(t, ['ping-pong', raw.target, '--size', '100']),
    report(t, ['ping-pong', raw.target, '--poll']),
    report(t, ['throughput', raw.target, '--size', '1000']),
    report(t, ['connect', raw.target]),
    report(t, ['throughput', ordinary.target, ...net]),
    report(t, ['ping-pong', ordinary.target, ...net], NO_FAST),
  ])
  const programs = { client: 'raw', server: 'raw', poll: false }
  t.match(pingPong, { version: 1, test: 'ping-pong', transport: programs, wire: 'shm', size: 100 })
  for (const { latencyUs } of [pingPong, connect]) {
    const { min = 0, p50 = 0, max = 0, mean = 0, stddev = -1 } = latencyUs ?? {}
    t.ok(min > 0 && p50 >= min && max >= p50 && mean >= min && mean <= max, 'there are percentiles')
    t.ok(stddev >= 0 && stddev <= max - min, 'there is a standard deviation')
  }
  t.match(pingPong, { warmUpSeconds: 0.0125 }, 'a quarter of what is measured')
  t.match(polled, { transport: { ...programs, poll: true }, wire: 'shm', size: 64 })
  t.ok(polled.count > 0)
  t.match(throughput, { test: 'throughput', wire: 'shm', size: 1000 })
  t.ok((throughput.bytesPerSecond ?? 0) > 0)
  t.ok(Number.isInteger(throughput.count), 'whole messages arrived')
  t.match(connect, { test: 'connect', wire: 'shm' })
  t.notOk('size' in connect)
  t.match(connect.wires, [{ wire: 'shm', count: connect.count }])
  t.equal(connect.wires?.length, 1)
  t.ok(connect.count > 0)
  t.match(overNet, { transport: { client: 'net', server: 'net', poll: false }, wire: 'shm' })
  t.match(overTcp, { wire: 'tcp', reason: { code: 'DISABLED', text: /FASTSOCKETS_DISABLE/ } })

  // A program may be the one and its server the other.
  const mixed = await perf(['ping-pong', ordinary.target, ...SHORT])
  t.equal(mixed.code, 0, mixed.stderr)
  t.match(mixed.stdout, /client raw, server net/)
  t.match(mixed.stdout, /round trip min.*round trip p99\.9.*round trip std dev/s)

  raw.server.kill('SIGINT')
  t.strictSame(await once(raw.server, 'exit'), [0, null], 'Ctrl-C is the ordinary end of a server')
})

t.test('as many as asked for, and no more, after a warm-up of any length', async t => {
  const [raw, ordinary] = await Promise.all([startServer(t, 'raw'), startServer(t, 'net')])
  const counted = (args: readonly string[], count: number, warmUp = '0'): Promise<PerfReport> =>
    report(t, args, {}, ['--count', String(count), '--warm-up', warmUp])
  const size = ['--size', '1000']
  const net = [ordinary.target, '--transport', 'net']
  const [pingPong, single, warm, polled, overNet, throughput, streamed, connect] = await Promise.all([
    counted(['ping-pong', raw.target], 70),
    counted(['ping-pong', raw.target], 1),
    counted(['ping-pong', raw.target], 70, '0.1'),
    counted(['ping-pong', raw.target, '--poll'], 70),
    counted(['ping-pong', ...net], 70),
    counted(['throughput', raw.target, ...size], 300),
    counted(['throughput', ...net, ...size], 300, '0.1'),
    counted(['connect', raw.target], 7),
  ])
  for (const { count, seconds, perSecond } of [pingPong, warm, polled, overNet]) {
    t.equal(count, 70)
    t.ok(seconds > 0 && Math.abs(perSecond - count / seconds) < 1e-6 * perSecond)
  }
  t.match(pingPong, { warmUpSeconds: 0 })
  t.match(warm, { warmUpSeconds: 0.1 })
  t.match(single, { count: 1, latencyUs: { stddev: 0 } })
  for (const { count } of [throughput, streamed]) t.equal(count, 300)
  t.equal(connect.count, 7)
})

t.test('what cannot be measured is said, with what to do', async t => {
  const stranger = net.createServer(socket => {
    socket.on('error', () => {}).end('220 I am somebody else\r\n')
  })
  stranger.listen(0, '127.0.0.1')
  await once(stranger, 'listening')
  t.teardown(() => stranger.close())
  const place = `127.0.0.1:${(stranger.address() as net.AddressInfo).port}`
  const [refused, nowhere, raw, ordinary] = await Promise.all([
    perf(['connect', '127.0.0.1:1']),
    perf(['connect', 'name.invalid:1']),
    perf(['ping-pong', place]),
    perf(['throughput', place, '--transport', 'net']),
  ])
  t.match(nowhere, { code: 1, stderr: /there is no way to name\.invalid:1 \(.*name\.invalid\)/ })
  t.match(refused, {
    code: 1,
    stdout: '',
    stderr: /no server listens at 127\.0\.0\.1:1 .*fastsockets perf server/,
  })
  for (const ended of [raw, ordinary])
    t.match(ended, { code: 1, stdout: '', stderr: /no `fastsockets perf server`/ })
})

t.test('a run of connections by two wires says how many went by each, and why', async t => {
  const { server, target } = await startServer(t, 'net')
  const args = [CLI, 'perf', 'connect', target, '--transport', 'net', '--seconds', '8', '--warm-up', '0']
  server.kill('SIGSTOP')
  // It gets no greeting, so it is on TCP; some seconds later it asks again.
  const client = spawn(process.execPath, [...args, '--json'], {
    env: { ...plainEnvironment(), FASTSOCKETS_GREETING_TIMEOUT_MS: '50' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => client.kill('SIGKILL'))
  const printed = text(client.stdout)
  await eventually('that it is on TCP', () =>
    readStatusOf(client.pid as number).some(({ fallbacks }) => (fallbacks.SILENT ?? 0) > 0),
  )
  server.kill('SIGCONT')
  const found = JSON.parse(await printed) as PerfReport
  const { wires = [], wire, count } = found
  t.strictSame(wires.map(one => `${one.wire} ${one.reason?.code}`).sort(), ['shm undefined', 'tcp SILENT'])
  t.equal(wire, wires[0]?.wire)
  t.equal(
    wires.reduce((sum, one) => sum + one.count, 0),
    count,
  )
  t.match(describeReport(found), /by the event loop.*SILENT.*: \d+ connections/s)
})

t.test('a server keeps nothing of connections that were reset', async t => {
  const child = new Child(t, new URL('./perf-timers-child.js', import.meta.url))
  t.strictSame(await child.receive(), { left: 0 })
})

t.test('without the C library, too, a client that polls comes to an end', async t => {
  const { target } = await startServer(t, 'raw')
  const env = { NODE_OPTIONS: `--import=${WITHOUT_LIBRARY}` }
  for (const test of ['ping-pong', 'throughput']) {
    const polled = await report(t, [test, target, '--poll'], env, ['--count', '20', '--warm-up', '0'])
    t.match(polled, { count: 20, wire: 'tcp', reason: { code: 'PLATFORM' }, transport: { poll: true } })
  }
})

t.test('a server that cannot poll is not said to', async t => {
  const { target } = await startServer(t, 'net')
  for (const test of ['ping-pong', 'throughput']) {
    const ended = await perf([test, target, '--poll', ...SHORT])
    t.match(ended, { code: 2, stdout: '', stderr: /no server that can poll listens at .*leave out --poll/ })
  }
})

t.test('a server that stands still is given up, with polls or without', async t => {
  const tests = [
    ['raw', 'ping-pong'],
    ['raw', 'ping-pong', '--poll'],
    ['net', 'ping-pong'],
    ['net', 'throughput'],
  ] as const
  await Promise.all(
    tests.map(async ([transport, test, ...options]) => {
      const { server, target } = await startServer(t, transport)
      const args = [test, target, '--transport', transport, ...options, '--count', '1000000000']
      const ended = perf(args)
      await eventually('the bytes of the test', () => bytesOf(server.pid as number) > 2 * PERF_MESSAGE_SIZE)
      server.kill('SIGSTOP')
      t.match(await ended, { code: 1, stderr: /the server did nothing for 10 s/ }, args.join(' '))
    }),
  )
})

t.test('wrong arguments are errors of usage', async t => {
  const cases: [args: string[], complaint: RegExp][] = [
    [['ping-pong', 'nowhere'], /localhost:8080/],
    [['throughput', '7000', '--size', '0'], /number of bytes/],
    [['connect', '7000', '--size', '8'], /unknown option/],
    [['ping-pong', '7000', '--transport', 'net', '--poll'], /--transport raw/],
    [['ping-pong', '7000', '--count', '0'], /a whole number from 1/],
    [['throughput', '7000', '--count', '1.5'], /a whole number from 1/],
    [['connect', '7000', '--warm-up', '-1'], /number of seconds from 0/],
    [['ping-pong', '7000', '--count', '9', '--seconds', '1'], /cannot be used with/],
    [['server', '0', '--count', '9'], /unknown option/],
    [['server', '0', '--transport', 'smoke'], /Allowed choices are raw, net/],
  ]
  await Promise.all(
    cases.map(async ([args, complaint]) => {
      t.match(await perf(args), { code: 2, stdout: '', stderr: complaint }, args.join(' '))
    }),
  )
})

t.test('the bytes of others are none of ours', async t => {
  const hello = encodeHello('net')
  t.equal(decodeHello(hello), 'net')
  const ask = encodeAsk({ test: 'throughput', isPolling: true })
  t.strictSame(decodeAsk(ask), { test: 'throughput', isPolling: true })
  const changed = (bytes: Buffer, offset: number): Buffer => {
    const copy = Buffer.from(bytes)
    copy.writeUInt8(0xff, offset)
    return copy
  }
  for (const offset of [0, 4, 5])
    t.equal(decodeHello(changed(hello, offset)), undefined, `hello, byte ${offset}`)
  for (const offset of [0, 4, 5, 6])
    t.equal(decodeAsk(changed(ask, offset)), undefined, `ask, byte ${offset}`)
  t.equal(decodeAsk(ask.subarray(0, 15)), undefined)
})
