/** Callers and answerers of a rendezvous may be hostile. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import net from 'node:net'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { type Endpoint, openEndpoint } from '../../../am/index.ts'
import { CONTROL_VERSION, type ControlMessage, type Open } from '../../../am/rendezvous/control-messages.ts'
import { isAlive } from '../../../am/rendezvous/dialing.ts'
import {
  decodeName,
  type EndpointName,
  encodeName,
  newEndpointName,
  rendezvousPath,
} from '../../../am/rendezvous/endpoint-name.ts'
import { type Driver, drivers } from '../../../nic/index.ts'
import { BLOB_NAME, BLOB_NONCE } from '../../../nic/shm/handoff-layout.ts'
import { Child } from '../../support/child.ts'
import { noPrlimit, withoutFiles } from '../../support/file-limits.ts'
import { NOBODY, noOtherUser } from '../../support/other-user.ts'
import { eventually, until, withWatchdog } from '../../support/until.ts'
import { ECHO } from '../endpoint-questions.ts'

const endpointFixture = new URL('../endpoint-child.js', import.meta.url)

/** How long a process is called that accepts no connection. */
const BUSY_MS = 200
/** Callers of another user that are not answered yet. */
const OTHERS_MAX = 16

async function open(t: Test, driver = 'loopback'): Promise<{ endpoint: Endpoint; name: EndpointName }> {
  const endpoint = await openEndpoint({ drivers: [driver] })
  t.teardown(() => endpoint.close())
  return { endpoint, name: decodeName(endpoint.name) as EndpointName }
}

async function call(t: Test, { thread }: EndpointName): Promise<net.Socket> {
  const socket = net.connect(rendezvousPath(thread))
  socket.on('error', () => {})
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}

/** Whether it ends in peace or by a reset. */
function closeOf(socket: net.Socket): Promise<void> {
  return new Promise(resolve => socket.once('close', () => resolve()))
}

function noShm(): string | false {
  const availability = (drivers.get('shm') as Driver).availability()
  return availability.usable ? false : availability.reason
}

/** All that is said until the other side hangs up. */
async function hear(socket: net.Socket): Promise<string> {
  let heard = ''
  socket.setEncoding('utf8').on('data', text => {
    heard += text
  })
  await withWatchdog('the end', closeOf(socket))
  return heard
}

function openMessage(to: EndpointName, changes: Partial<Open> = {}): string {
  const from = encodeName(newEndpointName())
  const message = {
    op: 'open',
    version: CONTROL_VERSION,
    to: to.endpoint,
    from,
    drivers: ['loopback'],
    credits: 8,
    tag: '0'.repeat(16),
  }
  return `${JSON.stringify({ ...message, ...changes })}\n`
}

/** Whatever strangers have done, friends are served. */
async function assertServes(t: Test, endpoint: Endpoint): Promise<void> {
  const friend = await openEndpoint({ drivers: ['loopback'] })
  endpoint.setHandler(1, message => message.reply(2, message.word(0)))
  await friend.map(0, endpoint.name)
  const reply = await withWatchdog('a reply', friend.call(0, 1, undefined, [7]))
  t.equal(reply.word(0), 7)
  await friend.close()
}

t.test('a caller is refused with the reason', async t => {
  const { endpoint, name } = await open(t)
  const nobody = { ...name, endpoint: '0'.repeat(16) }
  const longNames = new Array(32).fill('x'.repeat(256))
  const refusals: [line: string, code: string][] = [
    [openMessage(name, { version: CONTROL_VERSION + 1 }), 'VERSION'],
    [openMessage(name, { version: 0 }), 'VERSION'],
    [openMessage(nobody), 'NO_SUCH_ENDPOINT'],
    [openMessage(name, { drivers: [] }), 'NO_DRIVER'],
    [openMessage(name, { drivers: ['verbs', 'Loopback'] }), 'NO_DRIVER'],
    [openMessage(name, { from: 'am1-nobody' }), 'NO_DRIVER'],
    // Loopback reaches this thread only.
    [openMessage(name, { from: encodeName({ ...name, thread: '0'.repeat(32) }) }), 'NO_DRIVER'],
    [openMessage(name, { drivers: longNames }), 'NO_DRIVER'],
  ]
  for (const [line, code] of refusals) {
    const socket = await call(t, name)
    socket.write(line)
    const heard = await hear(socket)
    const refusal = JSON.parse(heard)
    t.match(refusal, { op: 'refuse', code })
    t.ok(refusal.text.length <= 256, refusal.text)
  }
  await assertServes(t, endpoint)
})

t.test('a caller that names no endpoint is disconnected without a message', async t => {
  const { endpoint, name } = await open(t)
  for (const line of [
    '\n',
    'hello\n',
    '{"op":"bye"}\n',
    openMessage(name, { credits: 0 }),
    'x'.repeat(100_000),
  ]) {
    const socket = await call(t, name)
    socket.write(line)
    t.equal(await hear(socket), '', line.slice(0, 20))
  }
  t.equal(await hear(await call(t, name)), '', 'and so is one who says nothing')
  await assertServes(t, endpoint)
})

t.test('callers who go at any moment leave nothing behind', async t => {
  const { endpoint, name } = await open(t)
  const line = openMessage(name)
  for (let length = 0; length <= line.length; length += 7) {
    const socket = await call(t, name)
    socket.write(line.slice(0, length))
    if (length % 2 === 0) socket.destroy()
    else socket.end()
  }
  const offered = await call(t, name)
  offered.write(line)
  await once(offered, 'data')
  offered.destroy()
  await assertServes(t, endpoint)
  await until('no peers', () => endpoint.stats().peers.length === 0)
})

/** A caller that behaves as an honest one so far. */
async function meet(t: Test, name: EndpointName): Promise<net.Socket> {
  const socket = await call(t, name)
  socket.write(openMessage(name))
  const [line] = (await once(socket, 'data')) as [Buffer]
  const offer = JSON.parse(line.toString()) as ControlMessage & { op: 'offer' }
  const end = await drivers.get('loopback')?.connect(Buffer.from(offer.blob, 'base64'))
  t.teardown(() => end?.close())
  await withWatchdog('the answer to its tag', once(socket, 'data'))
  return socket
}

t.test('a peer that says what it may not is cut off', async t => {
  const { endpoint, name } = await open(t)
  for (const line of [
    'hello\n',
    openMessage(name),
    '{"op":"refuse","code":"LIMIT","text":""}\n',
    '{"op":"offer","driver":"loopback","blob":"","credits":1}\n',
    '{"op":"mapped","id":0,"isTagRight":true,"segment":0,"longMax":0,"isReadOnly":false,"key":"AAAA"}\n',
    // Without a question.
    '{"op":"mapped","id":7,"isTagRight":true,"segment":100,"longMax":100,"isReadOnly":false,"key":""}\n',
    '{"op":"mapped","id":7,"isTagRight":false,"segment":0,"longMax":0,"isReadOnly":false,"key":""}\n',
  ]) {
    const socket = await meet(t, name)
    await until('the peer', () => endpoint.stats().peers.length > 0)
    socket.write(line)
    t.equal(await hear(socket), '', line)
    await until('its end', () => endpoint.stats().peers.length === 0)
  }
  await assertServes(t, endpoint)
})

t.test('a peer that shows a wrong tag hears nothing of the segment', async t => {
  const endpoint = await openEndpoint({ drivers: ['loopback'], tag: 7n, segment: 100 })
  t.teardown(() => endpoint.close())
  const socket = await meet(t, decodeName(endpoint.name) as EndpointName)
  const answerTo = async (line: string): Promise<object> => {
    socket.write(line)
    const [answer] = (await withWatchdog('an answer', once(socket, 'data'))) as [Buffer]
    return JSON.parse(answer.toString())
  }
  const wrong = await answerTo('{"op":"map","id":5,"tag":"0000000000000000"}\n')
  t.strictSame(wrong, {
    op: 'mapped',
    id: 5,
    isTagRight: false,
    segment: 0,
    longMax: 0,
    isReadOnly: false,
    key: '',
  })
  const right = await answerTo('{"op":"map","id":5,"tag":"0000000000000007"}\n')
  t.match(right, {
    op: 'mapped',
    id: 5,
    isTagRight: true,
    segment: 100,
    longMax: endpoint.limits.long,
    key: /./,
  })
})

t.test('a peer that asks for ever and never listens is cut off', async t => {
  const { endpoint, name } = await open(t)
  const socket = await meet(t, name)
  socket.pause()
  const questions = '{"op":"map","id":0,"tag":"0000000000000000"}\n'.repeat(1000)
  const closed = closeOf(socket)
  const ask = (): void => {
    while (!socket.destroyed && socket.write(questions));
  }
  socket.on('drain', ask)
  ask()
  await withWatchdog('the end', closed)
  await until('its end', () => endpoint.stats().peers.length === 0)
  await assertServes(t, endpoint)
})

/** The name of an endpoint that answers as `answer` says. */
async function impersonate(t: Test, answer: (socket: net.Socket) => void): Promise<string> {
  const { host } = newEndpointName()
  const thread = randomBytes(16).toString('hex')
  const server = net.createServer(socket => {
    socket.on('error', () => {})
    t.teardown(() => socket.destroy())
    socket.once('data', () => answer(socket))
  })
  server.listen(rendezvousPath(thread))
  await once(server, 'listening')
  t.teardown(() => server.close())
  return encodeName({ host, thread, endpoint: '0'.repeat(16) })
}

const offerLine = (changes: object): string =>
  `${JSON.stringify({ op: 'offer', driver: 'loopback', blob: 'AAAA', credits: 8, ...changes })}\n`

t.test('map rejects with the reason if a stranger answers at the name', async t => {
  const { endpoint } = await open(t)
  const answers: [what: string, answer: (socket: net.Socket) => void, code: string][] = [
    ['noise', socket => socket.write(randomBytes(100_000)), 'ERR_AM_NO_SUCH_ENDPOINT'],
    ['nothing, and hangs up', socket => socket.end(), 'ERR_AM_NO_SUCH_ENDPOINT'],
    ['bye', socket => socket.write('{"op":"bye"}\n'), 'ERR_AM_UNREACHABLE'],
    ['an open', socket => socket.write(openMessage(newEndpointName())), 'ERR_AM_UNREACHABLE'],
    [
      'an offer of a driver that is not here',
      socket => socket.write(offerLine({ driver: 'verbs' })),
      'ERR_AM_UNREACHABLE',
    ],
    ['an offer that is none', socket => socket.write(offerLine({})), 'ERR_AM_UNREACHABLE'],
    ['an offer, and hangs up', socket => socket.end(offerLine({})), 'ERR_AM_NO_SUCH_ENDPOINT'],
    ['an offer and no credits', socket => socket.write(offerLine({ credits: 0 })), 'ERR_AM_NO_SUCH_ENDPOINT'],
  ]
  for (const [what, answer, code] of answers) {
    const name = await impersonate(t, answer)
    await t.rejects(withWatchdog(what, endpoint.map(1, name)), { code }, what)
  }
  t.strictSame(endpoint.stats().peers, [])
})

t.test(
  'a caller that dies between the offer and the connection leaves no peer',
  { skip: noShm() },
  async t => {
    const { endpoint } = await open(t, 'shm')
    const offer = (drivers.get('shm') as Driver).offer()
    offer.cancel()
    const blob = Buffer.from(offer.blob)
    // Its socket's name: no socket listens there.
    randomBytes(BLOB_NONCE - BLOB_NAME).copy(blob, BLOB_NAME)
    const line = offerLine({ driver: 'shm', blob: blob.toString('base64') })
    const name = await impersonate(t, socket => socket.write(line))
    await t.rejects(endpoint.map(1, name), { code: 'ERR_AM_NO_SUCH_ENDPOINT' })
  },
)

t.test('maps that have asked a peer that goes share one new connection', async t => {
  const { endpoint } = await open(t)
  let calls = 0
  const name = await impersonate(t, socket => {
    const isFirst = ++calls === 1
    const offer = (drivers.get('loopback') as Driver).offer()
    void offer.accepted.then(end => t.teardown(() => end.close()))
    socket.write(offerLine({ blob: Buffer.from(offer.blob).toString('base64') }))
    const answerMap = (id: number): void => {
      const segment = { segment: 0, longMax: 0, isReadOnly: false, key: '' }
      const answer = { op: 'mapped', id, isTagRight: true, ...segment }
      socket.write(`${JSON.stringify(answer)}\n`)
    }
    answerMap(0)
    createInterface({ input: socket }).on('line', line => {
      if (isFirst) socket.destroy()
      else answerMap(JSON.parse(line).id)
    })
  })
  await endpoint.map(0, name)
  const maps = Array.from({ length: 8 }, (_, i) => endpoint.map(1 + i, name))
  await withWatchdog('all of them', Promise.all(maps))
  t.equal(calls, 2)
})

t.test('more maps at once than a control connection holds cut no caller off', async t => {
  const [near, far] = [await open(t), await open(t)]
  await near.endpoint.map(0, far.endpoint.name)
  const maps = Array.from({ length: 25_000 }, (_, i) => near.endpoint.map(1 + i, far.endpoint.name))
  await withWatchdog('all of them', Promise.all(maps))
  t.equal(near.endpoint.stats().peers.length, 1)
})

t.test('a process that can open nothing for its callers lives on', { skip: noPrlimit() }, async t => {
  const child = new Child(t, endpointFixture, ['shm'])
  const { name } = await child.ask<{ name: string }>({ ask: 'open' })
  await withoutFiles(child.pid, async () => {
    for (let i = 0; i < 10; i++) await call(t, decodeName(name) as EndpointName)
    await delay(BUSY_MS)
  })
  const friend = await openEndpoint({ drivers: ['shm'] })
  t.teardown(() => friend.close())
  await friend.map(0, name)
  t.equal((await friend.call(0, ECHO, undefined, [7])).word(0), 7)
  t.equal(child.stderr, '')
})

t.test(
  'no endpoint of another user is mapped, or counts as alive',
  { skip: noOtherUser(endpointFixture) },
  async t => {
    const { endpoint } = await open(t, 'shm')
    const child = new Child(t, endpointFixture, ['shm'], { uid: NOBODY, gid: NOBODY })
    const { name } = await child.ask<{ name: string }>({ ask: 'open' })
    await t.rejects(endpoint.map(0, name), { code: 'ERR_AM_NO_SUCH_ENDPOINT', message: /another user/ })
    t.equal(await isAlive(decodeName(name) as EndpointName), false)
    t.equal(await isAlive(decodeName(endpoint.name) as EndpointName), true)
  },
)

const crowdFixture = new URL('../../support/crowd-child.js', import.meta.url)

t.test('callers of another user get few offers at a time', { skip: noOtherUser(crowdFixture) }, async t => {
  const endpoint = await openEndpoint({ drivers: ['shm', 'loopback'] })
  t.teardown(() => endpoint.close())
  const name = decodeName(endpoint.name) as EndpointName
  const path = rendezvousPath(name.thread).slice(1)
  const line = openMessage(name, { drivers: ['shm'] })
  const crowd = new Child(t, crowdFixture, [path, '200', line], { uid: NOBODY, gid: NOBODY })
  await crowd.receive()
  await eventually('most of them to be gone', async () => {
    const { closed } = await crowd.ask<{ closed: number }>({})
    return closed >= 200 - OTHERS_MAX
  })
  await assertServes(t, endpoint)
})
