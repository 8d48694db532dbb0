/** Callers of other hosts may be hostile: their messages are checked, timed and bounded. */
import { once } from 'node:events'
import net from 'node:net'
import t, { type Test } from 'tap'
import { openEndpoint } from '../../../am/index.ts'
import type { ControlConnection } from '../../../am/rendezvous/control-connection.ts'
import { CONTROL_VERSION, type Open } from '../../../am/rendezvous/control-messages.ts'
import { answer } from '../../../am/rendezvous/dialing.ts'
import { encodeName, newEndpointName } from '../../../am/rendezvous/endpoint-name.ts'
import type { Origin } from '../../../am/rendezvous/reception.ts'
import { RemoteRendezvous } from '../../../am/rendezvous/remote-rendezvous.ts'
import { decodeTcpAddress, encodeTcpAddress, type TcpAddress } from '../../../am/rendezvous/tcp-address.ts'
import { type Driver, drivers } from '../../../nic/index.ts'
import { eventually, until, withWatchdog } from '../../support/until.ts'

const ENDPOINT = '0123456789abcdef'
/** REMOTE_CALLERS_MAX. */
const CALLERS_MAX = 64

/** A host that has no driver of this machine, and an endpoint that answers callers with `given`. */
async function open(
  t: Test,
  given: readonly Driver[],
  heard: (origin: Origin) => Promise<unknown> = async () => {},
): Promise<TcpAddress> {
  const rendezvous = new RemoteRendezvous(() => '127.0.0.1')
  const self = { name: newEndpointName(), drivers: given, credits: 8 }
  const host = {
    async answer(open: Open, connection: ControlConnection, origin: Origin) {
      await heard(origin)
      await answer(self, open, connection, origin)
    },
  }
  const address = await rendezvous.open(ENDPOINT, host)
  t.teardown(() => rendezvous.close(ENDPOINT))
  if (address === undefined) throw new Error('no endpoint listens')
  return address
}

async function call(t: Test, address: TcpAddress): Promise<net.Socket> {
  const socket = net.connect(address)
  socket.on('error', () => {})
  t.teardown(() => socket.destroy())
  await withWatchdog('the connection', once(socket, 'connect'))
  return socket
}

/** All that is said until the other side hangs up. */
async function hear(socket: net.Socket): Promise<string> {
  let heard = ''
  socket.setEncoding('utf8').on('data', text => {
    heard += text
  })
  await withWatchdog('the end', new Promise(resolve => socket.once('close', resolve)))
  return heard
}

/** The answer to a caller after the earlier callers have ended, and their end was noticed. */
async function heardAtLast(t: Test, address: TcpAddress): Promise<string> {
  return await eventually('an answer', async () => {
    const next = await call(t, address)
    next.write(openMessage())
    return (await hear(next)) || false
  })
}

function openMessage(changes: Partial<Open> = {}): string {
  const from = encodeName(newEndpointName())
  const message = {
    op: 'open',
    version: CONTROL_VERSION,
    to: ENDPOINT,
    from,
    drivers: ['shm', 'loopback'],
    credits: 8,
  }
  return `${JSON.stringify({ ...message, tag: '0'.repeat(16), ...changes })}\n`
}

t.test('strangers hear nothing, and who names no endpoint is refused', async t => {
  const address = await open(t, [...drivers.values()])
  for (const words of ['GET / HTTP/1.1\r\n\r\n', '{"op":"bye"}\n', 'x'.repeat(20_000)]) {
    const socket = await call(t, address)
    socket.write(words)
    t.equal(await hear(socket), '', JSON.stringify(words.slice(0, 20)))
  }
  const lost = await call(t, address)
  lost.write(openMessage({ to: 'f'.repeat(16) }))
  t.match(JSON.parse(await hear(lost)), { op: 'refuse', code: 'NO_SUCH_ENDPOINT' })
  const silent = await call(t, address)
  t.equal(await hear(silent), '', 'hung up on in the end')
})

t.test('whatever a caller says of its host, drivers of this host are not offered to it', async t => {
  const heard: Origin[] = []
  const address = await open(
    t,
    [...drivers.values()].filter(({ reach }) => reach !== 'network'),
    async origin => heard.push(origin),
  )
  const liar = await call(t, address)
  liar.write(openMessage())
  t.match(JSON.parse(await hear(liar)), { op: 'refuse', code: 'NO_DRIVER' })
  t.strictSame(heard, ['rdma'])
})

t.test('a driver that can make no offer refuses the caller', async t => {
  const broken: Driver = {
    ...(drivers.get('loopback') as Driver),
    name: 'broken',
    reach: 'network',
    offer: () => {
      throw new Error('no memory left')
    },
  }
  const socket = await call(t, await open(t, [broken]))
  socket.write(openMessage({ drivers: ['broken'] }))
  t.match(JSON.parse(await hear(socket)), { op: 'refuse', code: 'NO_DRIVER', text: 'broken: no memory left' })
})

t.test('only so many are heard at once, and a caller counts until it was answered', async t => {
  let asked = 0
  let release = (): void => {}
  const wait = new Promise<void>(resolve => {
    release = resolve
  })
  const address = await open(t, [], async () => {
    asked++
    await wait
  })
  const callers = await Promise.all(Array.from({ length: CALLERS_MAX }, () => call(t, address)))
  for (const caller of callers) caller.write(openMessage())
  await until('all callers', () => asked === CALLERS_MAX)
  const late = await call(t, address)
  late.write(openMessage())
  t.equal(await hear(late), '')
  t.equal(asked, CALLERS_MAX)
  release()
  t.match(
    await Promise.all(callers.map(hear)),
    callers.map(() => /NO_DRIVER/),
  )
  t.match(await heardAtLast(t, address), /NO_DRIVER/)
})

t.test('who is refused and keeps its side open is hung up on, and counts until then', async t => {
  const address = await open(t, [])
  const callers = await Promise.all(
    Array.from({ length: CALLERS_MAX }, async () => {
      const caller = net.connect({ ...address, allowHalfOpen: true })
      t.teardown(() => caller.destroy())
      caller.on('error', () => {})
      await withWatchdog('the connection', once(caller, 'connect'))
      caller.write(openMessage({ to: 'f'.repeat(16) }))
      const ended = once(caller.resume(), 'end')
      return { caller, ended }
    }),
  )
  await Promise.all(callers.map(({ ended }) => withWatchdog('the refusal', ended)))
  const late = await call(t, address)
  late.write(openMessage())
  t.equal(await hear(late), '', 'they still count')
  // What is written to a connection that is no more is answered by a reset.
  const gone = callers.map(({ caller }) => {
    const timer = setInterval(() => caller.write('.'), 100)
    const closed = new Promise(resolve => caller.once('close', resolve))
    return withWatchdog('the hang-up', closed).finally(() => clearInterval(timer))
  })
  await Promise.all(gone)
  t.match(await heardAtLast(t, address), /NO_DRIVER/)
})

t.test('a host whose network device has no address that can be called has no such port', async t => {
  for (const address of [undefined, 'fe80::1']) {
    const rendezvous = new RemoteRendezvous(() => address)
    t.equal(await rendezvous.open(ENDPOINT, { answer: async () => {} }), undefined)
  }
  // Of no interface of this host.
  const rendezvous = new RemoteRendezvous(() => '203.0.113.7')
  t.equal(await rendezvous.open(ENDPOINT, { answer: async () => {} }), undefined)
})

t.test('the name of an endpoint on another host cannot be mapped without its record', async t => {
  const elsewhere = encodeName({ ...newEndpointName(), host: '0'.repeat(32) })
  const endpoint = await openEndpoint({ drivers: ['loopback'] })
  await t.rejects(endpoint.map(0, elsewhere), {
    code: 'ERR_AM_UNREACHABLE',
    message: /loopback: the endpoint is on another host/,
  })
  await endpoint.close()
})

t.test('addresses in records', t => {
  for (const address of [
    { host: '10.0.0.1', port: 1 },
    { host: 'fd00::1:2', port: 65_535 },
  ]) {
    t.strictSame(decodeTcpAddress(encodeTcpAddress(address)), address)
  }
  const wrong = [
    '',
    '\0fastsockets-am-1',
    'tcp:localhost:80',
    'tcp:10.0.0.1:0',
    'tcp:10.0.0.1:65536',
    'tcp:10.0.0.256:80',
    'tcp:[10.0.0.1]:80',
    'tcp:fd00::1:80',
    'tcp:10.0.0.1:80 ',
    `tcp:[${'0'.repeat(80)}::1]:80`,
  ]
  for (const text of wrong) t.equal(decodeTcpAddress(text), undefined, text)
  t.end()
})
