/** What goes wrong around a daemon, with the real process. Disk and store are in store-faults.test.ts. */
import { once } from 'node:events'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { noPrlimit, withoutFiles } from '../support/file-limits.ts'
import { Named, temporaryFolder } from '../support/named.ts'
import { seededRandom } from '../support/random.ts'
import { eventually } from '../support/until.ts'

const REGISTRATIONS = 10_000
const PARALLEL = 32

t.test(
  `SIGKILL in a stream of ${REGISTRATIONS} registrations: what was acknowledged is there, and whole`,
  async t => {
    const random = seededRandom(t)
    const named = await Named.start(t, {
      args: ['--limits-names-per-lease', `${REGISTRATIONS}`, '--store-history', `${2 * REGISTRATIONS}`],
    })
    const { api } = named.client()
    const ended = await named.grant()
    await named.register('ended', ended)
    await named.ask('DELETE', `/v1/leases/${ended}`)
    const lease = await named.grant()
    const killAt = random.within(REGISTRATIONS / 4, (REGISTRATIONS * 3) / 4)
    const endpointOf = (i: number): string => `endpoint-${i}-${'x'.repeat(i % 300)}`
    const acknowledged: number[] = []
    let next = 0
    const register = async (): Promise<void> => {
      while (next < REGISTRATIONS) {
        const i = next++
        await api.register(`n/${i}`, lease, { endpoint: endpointOf(i) })
        acknowledged.push(i)
        if (acknowledged.length === killAt) named.signal('SIGKILL')
      }
    }
    const ends = await Promise.allSettled(Array.from({ length: PARALLEL }, register))
    t.ok(
      ends.every(({ status }) => status === 'rejected'),
      'it was killed under way',
    )
    t.ok(acknowledged.length >= killAt && acknowledged.length < killAt + 1000)
    await named.kill()
    await named.up()

    const { entries } = await api.list()
    const there = new Map(entries.map(entry => [entry.name, entry]))
    const missing = acknowledged.filter(i => !there.has(`n/${i}`))
    t.strictSame(missing, [], `${acknowledged.length} were acknowledged, ${there.size} are there`)
    const halves = entries.filter(({ name, record }) => record.endpoint !== endpointOf(Number(name.slice(2))))
    t.strictSame(halves, [], 'no half record')
    t.ok(there.size - acknowledged.length <= PARALLEL, 'no more than were under way')
    t.notOk(there.has('ended'))
    t.equal((await api.keepAlive(lease)).names, there.size, 'the lease lives')
    const revisions = new Set(entries.map(({ revision }) => revision))
    t.equal(revisions.size, entries.length)
  },
)

t.test('a stale socket file is replaced; what is no socket, or answers, is not', async t => {
  const named = await Named.start(t)
  await named.kill()
  t.ok(statSync(named.socketPath).isSocket(), 'SIGKILL leaves it behind')
  await named.up()
  await named.end('SIGTERM')
  t.notOk(readdirSync(named.folder).includes('named.sock'), 'SIGTERM does not')

  writeFileSync(named.socketPath, 'precious')
  t.strictSame(await named.spawn(), { code: 1, signal: null })
  t.match(named.stderr, 'there is a file in the place of the socket')
  t.equal(readFileSync(named.socketPath, 'utf8'), 'precious')

  const other = new Named(t)
  const stranger = createServer(() => {}).listen(other.socketPath)
  await once(stranger, 'listening')
  t.teardown(() => stranger.close())
  t.strictSame(await other.spawn(), { code: 1, signal: null })
  t.match(other.stderr, 'another daemon listens on the socket')

  const long = new Named(t, { folder: join(temporaryFolder(t), 'x'.repeat(110)) })
  t.strictSame(await long.spawn(), { code: 1, signal: null })
  t.match(long.stderr, "the socket's path is longer than")
})

t.test('the clock jumps: leases do not notice', async t => {
  // Every SIGUSR2 moves what the program takes for the time of day: a year ahead, then two back.
  const preload = join(temporaryFolder(t), 'clock.cjs')
  writeFileSync(
    preload,
    `const RealDate = Date; const jumps = [365, -365]; let shiftMs = 0
    process.on('SIGUSR2', () => { shiftMs = (jumps.shift() ?? 0) * 86400000; console.log(JSON.stringify({ msg: 'jumped', year: new Date().getFullYear() })) })
    globalThis.Date = class extends RealDate { constructor(...a) { super(...(a.length ? a : [RealDate.now() + shiftMs])) } static now() { return RealDate.now() + shiftMs } }`,
  )
  const named = await Named.start(t, { execArgv: ['--require', preload] })
  const years: unknown[] = []
  for (const _ of ['ahead', 'back']) {
    const [long, short] = [await named.grant(60_000), await named.grant(2500)]
    await named.register('long', long)
    await named.register('short', short)
    named.signal('SIGUSR2')
    await eventually(
      'the jump',
      () => named.messages().filter(({ msg }) => msg === 'jumped').length > years.length,
    )
    years.push(named.messages().findLast(({ msg }) => msg === 'jumped')?.year)
    await delay(300)
    t.equal((await named.lookUp('short')).status, 200, 'a lease does not end early')
    await eventually('the short one to end', async () => (await named.lookUp('short')).status === 404)
    t.equal((await named.lookUp('long')).status, 200)
    t.equal((await named.ask('POST', `/v1/leases/${long}/keepalive`)).status, 200)
    await named.ask('DELETE', `/v1/leases/${long}`)
  }
  t.equal(Number(years[0]) - Number(years[1]), 2, 'the clock has really jumped')
})

t.test(
  'a daemon that was stopped for longer than a lease lasts does not hold it against its clients',
  async t => {
    const named = await Named.start(t)
    const lease = await named.grant(2000)
    await named.register('a', lease)
    named.signal('SIGSTOP')
    await delay(4000)
    named.signal('SIGCONT')
    t.equal((await named.lookUp('a')).status, 200)
    t.equal((await named.ask('POST', `/v1/leases/${lease}/keepalive`)).status, 200)
    await eventually('its end', async () => (await named.lookUp('a')).status === 404)
  },
)

/** Node accepts one connection a turn of its event loop, so the backlog of a busy daemon may be full (EAGAIN). */
async function open(path: string): Promise<Socket> {
  return await eventually('room in the backlog', async () => {
    const socket = connect(path)
    const isOpen = await new Promise<boolean>(resolve => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    })
    return isOpen && socket
  })
}

t.test('10,000 idle connections: others are answered, and the idle are shown the door', async t => {
  const descriptors = Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1])
  const wanted = Math.min(10_000, descriptors - 500)
  if (wanted < 10_000) t.comment(`only ${wanted}: this process may have ${descriptors} descriptors`)
  const named = await Named.start(t)
  await named.register('a', await named.grant())
  const sockets = new Set<Socket>()
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
  })
  let openedCount = 0
  while (openedCount < wanted) {
    const batch = await Promise.all(Array.from({ length: 100 }, () => open(named.socketPath)))
    for (const socket of batch) {
      sockets.add(socket)
      socket
        .on('error', () => {})
        .on('close', () => sockets.delete(socket))
        .resume()
    }
    openedCount += batch.length
    t.equal((await named.lookUp('a')).status, 200)
  }
  const { text } = await named.ask('GET', '/metrics')
  const connections = Number(/^fastsockets_named_connections (\d+)$/m.exec(text)?.[1])
  t.comment(`${connections} open at once, ${residentMiB(named.pid)} MiB`)
  t.equal((await named.register('b', await named.grant())).status, 200)
  await eventually('the idle to be hung up on', () => sockets.size === 0)
  t.equal((await named.lookUp('a')).status, 200)
})

t.test(
  'slow-loris: a request that does not come to its end holds up no other caller, and not for long',
  async t => {
    const named = await Named.start(t, { args: ['--limits-request-ms', '1500'] })
    await named.register('a', await named.grant())
    const slow = Array.from({ length: 300 }, (_, i) => new SlowCaller(t, named, i))
    await eventually('all of them', () => slow.every(({ isConnected }) => isConnected))
    for (let i = 0; i < 20; i++) {
      t.equal((await named.lookUp('a')).status, 200)
      await delay(20)
    }
    await eventually('them to be hung up on', () => slow.every(({ isClosed }) => isClosed))
    for (const part of ['head', 'body'] as const) {
      const told = slow.filter(({ heard, isBody }) => isBody === (part === 'body') && IS_TIMEOUT.test(heard))
      t.ok(told.length > 0, `${told.length} are told that their ${part} takes too long`)
    }
    t.equal((await named.lookUp('a')).status, 200)
  },
)

const IS_TIMEOUT = /^HTTP\/1.1 408 .*urn:fastsockets:problem:request-timeout/s

/** Sends a head, or a body, one byte at a time. */
class SlowCaller {
  isConnected = false
  isClosed = false
  heard = ''
  readonly isBody: boolean

  constructor(t: Test, { socketPath }: Named, index: number) {
    this.isBody = index % 2 === 1
    const head =
      'POST /v1/leases HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n'
    const text = this.isBody ? `${head}\r\n${' '.repeat(1000)}` : `${head}x-more: ${'a'.repeat(1000)}`
    const socket = connect(socketPath)
    let at = 0
    const timer = setInterval(() => socket.write(text[at++ % text.length] as string), 20)
    socket.once('connect', () => {
      this.isConnected = true
      // Half of them are in the middle of their body already.
      if (!this.isBody) return
      at = head.length + 10
      socket.write(text.slice(0, at))
    })
    socket.setEncoding('utf8').on('data', data => {
      this.heard += data
    })
    socket.on('error', () => {})
    socket.once('close', () => {
      clearInterval(timer)
      this.isClosed = true
    })
    t.teardown(() => socket.destroy())
  }
}

function residentMiB(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kib) / 1024)
}

t.test('a daemon that can open nothing for its callers lives on', { skip: noPrlimit() }, async t => {
  const named = await Named.start(t)
  const lease = await named.grant()
  await withoutFiles(named.pid, async () => {
    for (let i = 0; i < 10; i++) {
      const caller = connect(named.socketPath)
      caller.on('error', () => {})
      t.teardown(() => caller.destroy())
      await once(caller, 'connect')
    }
    await delay(200)
  })
  await named.register('after', lease)
  t.equal(named.stderr, '')
})
