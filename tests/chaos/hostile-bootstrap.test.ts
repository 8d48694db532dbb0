/** Callers of the hashed port, and of the door that it names, may send any bytes at any rate, also recorded ones of an honest caller. */
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import t, { type Test } from 'tap'
import {
  ANSWER_MAGIC,
  answerLength,
  decodeAnswer,
  decodeIntroduction,
  encodeAnswer,
  encodeIntroduction,
  GREETING_MAGIC,
  HELLO_MAGIC,
  INTRODUCTION_SIZE,
  type Introduction,
  mayBe,
  NO_ID,
  REFUSAL,
  VERSION,
  versionOf,
} from '../../fastsockets/bootstrap/bootstrap-layout.ts'
import { doorPath } from '../../fastsockets/bootstrap/door.ts'
import { hashedPort } from '../../fastsockets/bootstrap/hashed-port.ts'
import { Peers } from '../../fastsockets/connect/peers.ts'
import net, { type Socket, transportOf } from '../../fastsockets/index.ts'
import { hostIdentity, newOwnSocket } from '../../nic/index.ts'
import { Child } from '../support/child.ts'
import { liveMemory } from '../support/garbage.ts'
import { block, longestTurnMs, METER, RUNS } from '../support/measured-child.ts'
import { portWithFirstHashed } from '../support/ports.ts'
import { Random, seededRandom } from '../support/random.ts'
import { program, relinked } from '../support/relinked.ts'
import { eventually, withWatchdog } from '../support/until.ts'

const MILLION = 1_000_000
const GROWTH_MAX = 4 * 2 ** 20
/** Messages that are handled in one turn of the event loop: callers that speak at once, with what each has said. */
const TURN = 100
/**
 * The longest that an attacked process may stand still. It catches work that grows with what a stranger says, or with how often:
 * a number in a message that becomes the length of a loop or of an allocation, bytes that are looked at again with each one
 * that follows, offers or callers without a limit, and garbage whose collection is felt. It is of the process's own doing,
 * the best of a few runs, so that neither other processes nor a first time count.
 */
const STALL_MAX_MS = 10
/** Each run. */
const CALLS = 700
const AT_ONCE = 20
/** More than the offers that one thread makes at a time. */
const REPLAYS = 150
/** Pause between two bytes of a caller that sends them one by one. */
const DRIP_MS = 300

function introduction(random: Random): Introduction {
  return {
    version: VERSION,
    port: random.within(1, 65_535),
    isShared: false,
    isRequired: false,
    endpointId: random.bytes(16),
    hostIdentity: hostIdentity(),
    uid: process.getuid?.() ?? 0,
    pid: process.pid,
    door: NO_ID,
    listenerId: NO_ID,
  }
}

/** A good message of the handshake with some of its bytes changed, cut off, or followed by others. */
function spoil(random: Random, good: Buffer, into: Buffer): Buffer {
  const length = random.chance(0.8) ? good.length : random.within(0, into.length)
  good.copy(into)
  for (let i = random.within(0, 4); i > 0; i--) into[random.within(0, good.length - 1)] = random.word()
  return into.subarray(0, length)
}

t.test('a million random greetings, hellos and answers throw nothing and keep nothing', async t => {
  const random = seededRandom(t)
  const { seed } = random
  const peers = new Peers(
    () => REFUSAL.NOT_LISTENING,
    () => {
      throw new Error('no peer is dialled')
    },
  )
  const hello = introduction(random)
  const goods = [
    encodeIntroduction(GREETING_MAGIC, hello),
    // Of another host: nothing that is right but for this is to cost an offer.
    encodeIntroduction(HELLO_MAGIC, { ...hello, hostIdentity: Buffer.alloc(16) }),
    encodeAnswer({ result: 0, driver: 'shm', blob: random.bytes(40) }),
  ] as const
  const scratch = Buffer.alloc(600)
  const least = new Float64Array(MILLION / TURN).fill(Number.POSITIVE_INFINITY)
  const before = await liveMemory()
  const understood = { greetings: 0, hellos: 0, answers: 0 }
  let startMs = performance.now()
  const handle = (i: number, bytes: Buffer): void => {
    versionOf(bytes)
    const magic = [GREETING_MAGIC, HELLO_MAGIC, ANSWER_MAGIC][i % 3] as Buffer
    if (!mayBe(magic, bytes)) return
    if (i % 3 === 2) {
      const length = answerLength(bytes)
      if (length !== undefined && length > 0 && length === bytes.length && decodeAnswer(bytes) !== undefined)
        understood.answers++
    } else if (bytes.length === INTRODUCTION_SIZE) {
      const decoded = decodeIntroduction(magic, bytes)
      if (decoded === undefined) return
      if (i % 3 === 0) understood.greetings++
      else if ('refusal' in peers.answer(decoded, process.getuid?.())) understood.hellos++
      else t.fail('an offer to another host')
    }
  }
  for (let run = 0; run < RUNS; run++) {
    // The same ones again: of each turn the quickest counts.
    const words = new Random(seed)
    for (let i = 0; i < MILLION; i++) {
      if (i % TURN === 0) startMs = performance.now()
      handle(i, spoil(words, goods[i % 3] as Buffer, scratch))
      const turn = Math.floor(i / TURN)
      if (i % TURN === TURN - 1) least[turn] = Math.min(least[turn] as number, performance.now() - startMs)
    }
  }
  const worstMs = least.reduce((most, ms) => Math.max(most, ms), 0)
  t.ok(worstMs < STALL_MAX_MS, `the longest of ${least.length} turns took ${worstMs.toFixed(2)} ms`)
  for (const [what, count] of Object.entries(understood))
    t.ok(count > 1000, `${count} ${what} were understood`)
  const growth = (await liveMemory()) - before
  t.ok(growth < GROWTH_MAX, `${growth} bytes more`)
})

/** A call to the hashed port by a stranger, which is not relinked. */
function callAsStranger(port: number): Socket {
  const socket = net.connect({ port: hashedPort(port, 0), host: '127.0.0.1', localAddress: '127.0.0.1' })
  socket.on('error', () => {})
  return socket
}

/** What the hashed port sends to every caller. */
async function greetingOf(port: number): Promise<Introduction> {
  const bytes = Buffer.concat(await withWatchdog('a greeting', callAsStranger(port).toArray()))
  const greeting = decodeIntroduction(GREETING_MAGIC, bytes)
  if (greeting === undefined) throw new Error('the hashed port does not greet')
  return greeting
}

/** A call to the door that a greeting names, where a HELLO is heard. */
function callDoor({ door }: Introduction): Socket {
  const socket = newOwnSocket().connect({ path: doorPath(door) })
  socket.on('error', () => {})
  return socket
}

async function expectFast(t: Test, port: number): Promise<void> {
  const socket = net.connect(port, '127.0.0.1')
  await withWatchdog('a connection', once(socket, 'connect'))
  t.equal(transportOf(socket).transport, 'shm', 'who is honest is served')
  socket.destroy()
}

/** A relinked server that has its first hashed port, has been called before, and measures its turns. */
async function startServer(t: Test): Promise<{ server: Child; port: number }> {
  const port = await portWithFirstHashed()
  const place = ['127.0.0.1', String(port)]
  const metered = relinked({ execArgv: ['--import', METER.href] })
  const server = new Child(t, program('server'), ['echo', ...place], metered)
  await server.receive()
  await expectFast(t, port)
  return { server, port }
}

t.test('a server that stands still is seen to', async t => {
  const { server } = await startServer(t)
  const turnMs = await longestTurnMs(server, async () => block(server, 2 * STALL_MAX_MS))
  t.ok(turnMs > STALL_MAX_MS, `${turnMs.toFixed(2)} ms`)
})

t.test(`${RUNS * CALLS} callers who spoil their hello`, async t => {
  const random = seededRandom(t)
  const { server, port } = await startServer(t)
  const greeting = await greetingOf(port)
  const said = { ...introduction(random), listenerId: greeting.listenerId, hostIdentity: Buffer.alloc(16) }
  const hello = encodeIntroduction(HELLO_MAGIC, said)
  const hellos = Array.from({ length: CALLS }, () => Buffer.from(spoil(random, hello, Buffer.alloc(100))))
  const callMany = async (_: unknown, caller: number): Promise<void> => {
    for (let i = caller; i < CALLS; i += AT_ONCE) {
      const socket = callDoor(greeting)
      socket.resume()
      socket.end(hellos[i] as Buffer)
      await withWatchdog(
        'the end of the call',
        new Promise<void>(resolve => socket.once('close', () => resolve())),
      )
    }
  }
  const turnMs = await longestTurnMs(server, async () => {
    await Promise.all(Array.from({ length: AT_ONCE }, callMany))
  })
  t.ok(turnMs < STALL_MAX_MS, `the server stood still for ${turnMs.toFixed(2)} ms at most`)
  await expectFast(t, port)
  t.equal(server.stderr, '')
})

t.test('a hello that is said again and again gets offers up to the limit, which all go', async t => {
  const random = seededRandom(t)
  const { server, port } = await startServer(t)
  const greeting = await greetingOf(port)
  const { listenerId } = greeting
  const hello = encodeIntroduction(HELLO_MAGIC, { ...introduction(random), listenerId })
  const descriptors = (): number => readdirSync(`/proc/${server.pid}/fd`).length
  const before = descriptors()
  const call = async (sockets: Socket[], results: Record<number, number>): Promise<void> => {
    const socket = callDoor(greeting)
    sockets.push(socket)
    let heard = Buffer.alloc(0)
    const answered = new Promise<void>(resolve => {
      socket.once('close', () => resolve())
      socket.on('data', bytes => {
        heard = Buffer.concat([heard, bytes])
        const length = answerLength(heard)
        if (length === undefined || heard.length < length) return
        const result = decodeAnswer(heard)?.result ?? -1
        results[result] = (results[result] ?? 0) + 1
        resolve()
      })
    })
    socket.write(hello)
    await withWatchdog('an answer', answered)
  }
  const turnMs = await longestTurnMs(server, async () => {
    const results: Record<number, number> = {}
    const sockets: Socket[] = []
    for (let i = 0; i < REPLAYS; i++) await call(sockets, results)
    t.ok((results[0] ?? 0) > 0 && (results[REFUSAL.LIMIT] ?? 0) > 0, JSON.stringify(results))
    t.equal((results[0] ?? 0) + (results[REFUSAL.LIMIT] ?? 0), REPLAYS, 'an offer or a refusal for each')
    // No client takes them up: they expire, though the callers stay connected.
    await eventually('the offers to go', () => descriptors() <= before)
    for (const socket of sockets) socket.destroy()
  })
  t.ok(turnMs < STALL_MAX_MS, `the server stood still for ${turnMs.toFixed(2)} ms at most`)
  await expectFast(t, port)
  t.equal(server.stderr, '')
})

t.test(
  'a caller who goes on saying a little holds its place no longer than one who says nothing',
  async t => {
    const random = seededRandom(t)
    const { port } = await startServer(t)
    const greeting = await greetingOf(port)
    const said = { ...introduction(random), listenerId: greeting.listenerId }
    const hello = encodeIntroduction(HELLO_MAGIC, said)
    const refused = encodeIntroduction(HELLO_MAGIC, { ...said, hostIdentity: Buffer.alloc(16) })
    for (const [what, first] of [
      ['part of a hello', hello.subarray(0, 1)],
      ['what is refused', refused],
    ] as const) {
      const socket = callDoor(greeting)
      socket.allowHalfOpen = true
      socket.resume()
      socket.write(first)
      let said = 1
      const timer = setInterval(() => socket.write(hello.subarray(said, ++said)), DRIP_MS)
      await withWatchdog(what, new Promise<void>(resolve => socket.once('close', () => resolve())))
      clearInterval(timer)
      t.ok(said < INTRODUCTION_SIZE, `${what}, and ${said} bytes more`)
    }
    await expectFast(t, port)
  },
)
