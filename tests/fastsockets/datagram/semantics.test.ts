/** What UDP promises, and what it does not, between two relinked programs, while their datagrams move to shared memory and after it. */
import t, { type Test } from 'tap'
import type { DatagramTransport } from '../../../fastsockets/datagram/datagram-transport.ts'
import { readAllStatus, readStatusOf } from '../../../fastsockets/status/read-status.ts'
import { Child, plainEnvironment } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'
import { eventually } from '../../support/until.ts'
import type { Order, Taken } from '../programs/datagram-peer.ts'

const env = { ...plainEnvironment(), FASTSOCKETS_DATAGRAMS: 'fast' }

interface Peer {
  readonly child: Child
  readonly port: number
}

async function peer(t: Test, args: readonly string[] = [], isPlain = false): Promise<Peer> {
  const child = new Child(t, program('datagram-peer'), args, isPlain ? {} : relinked({ env }))
  return { child, port: (await child.receive<{ port: number }>()).port }
}

function tell<T>({ child }: Peer, order: Order): Promise<T> {
  return child.ask<T>(order)
}

async function transportOf(peer: Peer): Promise<DatagramTransport> {
  return await tell<DatagramTransport>(peer, { do: 'transport' })
}

/** Sends until the datagrams from `from` to `to` go through shared memory; drops what came before. */
async function untilFast(from: Peer, to: Peer): Promise<void> {
  await eventually('a fast pair', async () => {
    await tell(from, { do: 'send', port: to.port })
    const { pairs } = await transportOf(from)
    return pairs.some(({ port, sends }) => port === to.port && sends === 'shm')
  })
  await taken(to, 'the last one', ({ count }) => count > 0)
  await tell(to, { do: 'take' })
}

/** What `peer` has received, once that is enough. */
async function taken(peer: Peer, what: string, isEnough: (all: Taken) => boolean): Promise<Taken> {
  const all: Taken[] = []
  return await eventually(what, async () => {
    all.push(await tell<Taken>(peer, { do: 'take' }))
    const sum = {
      count: all.reduce((count, one) => count + one.count, 0),
      isInOrder: all.every(one => one.isInOrder),
      last: all.findLast(one => one.count > 0)?.last ?? -1,
      ports: [...new Set(all.flatMap(({ ports }) => ports))],
      errors: all.flatMap(({ errors }) => errors),
      storage: [...new Set(all.flatMap(({ storage }) => storage))],
    }
    return isEnough(sum) && sum
  })
}

t.test('no datagram overtakes another while the pair moves', async t => {
  const [from, to] = await Promise.all([peer(t), peer(t)])
  // On a busy machine the search may take longer than to send so many.
  const sent = await eventually('a fast pair', async () => {
    const order = { do: 'send', port: to.port, count: 20_000 } as const
    const { sent, isInOrder } = await tell<{ sent: number; isInOrder: boolean }>(from, order)
    t.ok(isInOrder, 'callbacks come in the order of the sends')
    return (await transportOf(from)).transport === 'shm' && sent
  })
  const all = await taken(to, 'the last datagram', ({ last }) => last === sent - 1)
  t.ok(all.isInOrder, `${all.count} datagrams in order`)
  t.strictSame(all.ports, [from.port])
})

t.test('a receiver that is busy loses nothing that it has room for', async t => {
  const [from, to] = await Promise.all([peer(t), peer(t)])
  await untilFast(from, to)
  to.child.process.kill('SIGSTOP')
  await tell(from, { do: 'send', port: to.port, count: 2000, size: 1024 })
  to.child.process.kill('SIGCONT')
  const all = await taken(to, 'all', ({ count }) => count === 2000)
  t.ok(all.isInOrder)
})

t.test('a full receiver drops, and blocks nobody', async t => {
  const [from, to] = await Promise.all([peer(t), peer(t)])
  const { size } = await tell<{ size: number }>(to, { do: 'limit', bytes: 32_768 })
  await untilFast(from, to)
  const before = (await transportOf(from)).pairs[0]?.sent ?? 0
  to.child.process.kill('SIGSTOP')
  await tell(from, { do: 'send', port: to.port, count: 5000, size: 1024 })
  to.child.process.kill('SIGCONT')
  const count = await eventually('every datagram to be received or dropped', async () => {
    const [sending] = (await transportOf(from)).pairs
    const [receiving] = (await transportOf(to)).pairs
    if (sending === undefined || receiving === undefined) return false
    const dropped = sending.sentDropped + receiving.receivedDropped
    const got = receiving.received - before
    return got + dropped === 5000 && { dropped, got }
  })
  const [shown] = readStatusOf(to.child.pid)
  const sending = (await transportOf(from)).pairs[0]
  const sender = readAllStatus().find(({ pid }) => pid === from.child.pid)
  t.match(
    sender?.sockets,
    [
      { kind: 'udp', local: `127.0.0.1:${from.port}` },
      {
        kind: 'dgram',
        transport: 'shm',
        role: 'client',
        remote: `127.0.0.1:${to.port}`,
        peer: { pid: to.child.pid },
      },
    ],
    'status has both',
  )
  t.equal(sender?.droppedOut, sending?.sentDropped)
  t.strictSame(await tell(from, { do: 'metrics' }), {
    in: 0,
    out: sender?.datagramsOut,
    in_dropped: 0,
    out_dropped: sending?.sentDropped,
  })
  t.match(await tell(to, { do: 'metrics' }), { in: before + count.got, out: 0 })
  t.match(shown, {
    datagramsIn: before + count.got,
    droppedIn: (await transportOf(to)).pairs[0]?.receivedDropped,
  })
  t.ok(count.dropped > 0, `${count.dropped} are dropped`)
  t.ok(count.got * 1024 <= 1.25 * size, `${count.got} fit into ${size} bytes`)
  await tell(from, { do: 'send', port: to.port })
  t.equal((await taken(to, 'the next one', ({ last }) => last > 5000)).isInOrder, true)
})

t.test(
  'a receiver that has died: later datagrams go to the kernel, and to the next owner of the port',
  async t => {
    const [from, to] = await Promise.all([peer(t), peer(t)])
    await untilFast(from, to)
    await to.child.kill()
    await eventually('the end of the pair', async () => (await transportOf(from)).transport === 'udp')
    const next = await peer(t, ['udp4', '127.0.0.1', String(to.port)], true)
    await tell(from, { do: 'send', port: to.port, count: 3 })
    const all = await taken(next, 'them', ({ count }) => count === 3)
    t.strictSame(all.ports, [from.port])
  },
)

t.test('a receiver that has closed its socket has received what was sent before', async t => {
  const [from, to] = await Promise.all([peer(t), peer(t)])
  await untilFast(from, to)
  await tell(from, { do: 'send', port: to.port, count: 100 })
  t.equal((await taken(to, 'all', ({ count }) => count === 100)).isInOrder, true)
  to.child.send({ do: 'leave' })
  t.strictSame(await to.child.end(), { code: 0, signal: null }, 'nothing keeps its process')
  await eventually('the end of the pair', async () => (await transportOf(from)).transport === 'udp')
})

t.test('a sender that has closed its socket: what it has sent is delivered', async t => {
  const [from, to] = await Promise.all([peer(t), peer(t)])
  await untilFast(from, to)
  to.child.process.kill('SIGSTOP')
  await tell(from, { do: 'send', port: to.port, count: 500, size: 1024 })
  from.child.send({ do: 'leave' })
  t.strictSame(await from.child.end(), { code: 0, signal: null })
  to.child.process.kill('SIGCONT')
  t.equal((await taken(to, 'all', ({ count }) => count === 500)).isInOrder, true)
})

t.test('connected sockets', async t => {
  const [from, to, stranger] = await Promise.all([peer(t), peer(t), peer(t)])
  t.strictSame(await tell(from, { do: 'connect', port: to.port }), {
    address: '127.0.0.1',
    family: 'IPv4',
    port: to.port,
  })
  await eventually('a fast pair', async () => {
    await tell(from, { do: 'send' })
    return (await transportOf(from)).transport === 'shm'
  })
  await eventually('a fast answer', async () => {
    await tell(to, { do: 'send', port: from.port })
    return (await transportOf(from)).pairs[0]?.receives === 'shm'
  })
  await tell(stranger, { do: 'send', port: from.port, count: 50 })
  t.strictSame((await tell<Taken>(from, { do: 'take' })).ports, [to.port], 'strangers are not heard')
  t.not((await transportOf(stranger)).transport, 'shm')
  await to.child.kill()
  await eventually('the kernel to refuse', async () => {
    await tell(from, { do: 'send' })
    return (await tell<Taken>(from, { do: 'take' })).errors.includes('ECONNREFUSED')
  })
  await tell(from, { do: 'disconnect' })
  await tell(stranger, { do: 'take' })
  await eventually('a datagram to any other', async () => {
    await tell(from, { do: 'send', port: stranger.port })
    return (await tell<Taken>(stranger, { do: 'take' })).count > 0
  })
})

t.test('a listener that throws has received its datagram; the next ones follow', async t => {
  const [from, to] = await Promise.all([peer(t), peer(t)])
  await untilFast(from, to)
  const { sent } = await tell<{ sent: number }>(from, { do: 'send', port: to.port })
  await tell(to, { do: 'throw', count: sent + 5 })
  await tell(from, { do: 'send', port: to.port, count: 20 })
  const all = await taken(to, 'all', ({ last }) => last === sent + 19)
  t.equal(all.count, 21)
  t.strictSame(all.errors, ['thrown'])
  t.strictSame(all.storage, ['at creation'], 'the asynchronous context is that of the socket')
})

t.test('SOCKET_OPTION: what only the kernel can honour brings both directions back to it', async t => {
  const [from, to] = await Promise.all([peer(t), peer(t)])
  await untilFast(from, to)
  await untilFast(to, from)
  await tell(from, { do: 'ttl' })
  t.equal((await transportOf(from)).reason?.code, 'SOCKET_OPTION')
  await tell(from, { do: 'send', port: to.port, count: 100 })
  t.equal((await taken(to, 'all', ({ count }) => count === 100)).isInOrder, true)
  await tell(to, { do: 'send', port: from.port, count: 100 })
  await taken(from, 'all', ({ count }) => count === 100)
  for (const one of [from, to])
    await eventually('the end of the pair', async () => (await transportOf(one)).transport === 'udp')
})

t.test('SHARED_PORT: a socket that may share its port stays with the kernel', async t => {
  const [from, to] = await Promise.all([peer(t), peer(t, ['udp4', '127.0.0.1', '0', 'reuse'])])
  await tell(from, { do: 'send', port: to.port, count: 200 })
  await taken(to, 'all', ({ last }) => last === 199)
  t.equal((await transportOf(from)).transport, 'udp')
  t.equal((await transportOf(to)).reason?.code, 'SHARED_PORT')
  const [status] = readStatusOf(to.child.pid)
  t.match(status?.sockets, [{ kind: 'udp', local: `127.0.0.1:${to.port}`, reason: 'SHARED_PORT' }])
})

t.test('DISABLED: datagrams stay with the kernel', async t => {
  const options = relinked({ env: { ...env, FASTSOCKETS_DISABLE: '1' } })
  const from = new Child(t, program('datagram-peer'), [], options)
  const [{ port }, to] = await Promise.all([from.receive<{ port: number }>(), peer(t)])
  await from.ask({ do: 'send', port: to.port, count: 200 })
  await taken(to, 'all', ({ last }) => last === 199)
  t.match(await transportOf({ child: from, port }), {
    transport: 'udp',
    reason: { code: 'DISABLED' },
    pairs: [],
  })
})

t.test('datagrams start with the kernel, and move once that pays', async t => {
  const { FASTSOCKETS_START: _, ...light }: NodeJS.ProcessEnv = env
  // The second one has no light phase, and loads as late.
  const child = (users: object): Child =>
    new Child(t, program('datagram-peer'), [], relinked({ env: { ...light, ...users } }))
  const peers: Peer[] = []
  for (const one of [child({}), child({ FASTSOCKETS_USERS: String(process.geteuid?.()) })])
    peers.push({ child: one, port: (await one.receive<{ port: number }>()).port })
  const [from, to] = peers as [Peer, Peer]
  await tell(from, { do: 'send', port: to.port, count: 500 })
  t.strictSame((await transportOf(from)).transport, 'udp', 'a few pay for nothing')
  for (const { child, port } of peers)
    t.match(
      readStatusOf(child.pid),
      [{ isLoaded: false, sockets: [{ kind: 'udp', transport: 'udp', local: `127.0.0.1:${port}` }] }],
      'status has its socket',
    )
  await eventually('the move', async () => {
    await tell(from, { do: 'send', port: to.port, count: 1000 })
    return (await transportOf(from)).transport === 'shm'
  })
  t.ok((await tell<Taken>(to, { do: 'take' })).isInOrder)
})

t.test('an echo, too, leaves the kernel once that pays, whichever side was there first', async t => {
  const { FASTSOCKETS_START: _, ...light }: NodeJS.ProcessEnv = env
  const echo = new Child(t, program('datagrams'), ['echo', 'udp4', '127.0.0.1'], relinked({ env: light }))
  const { port } = await echo.receive<{ port: number }>()
  const args = ['client', 'udp4', '', '127.0.0.1', String(port)]
  const client = new Child(t, program('datagrams'), args, relinked({ env: light }))
  await eventually('both directions to move', async () => {
    await client.ask({ echoes: 500 })
    const { pairs } = await client.ask<DatagramTransport>({ pairs: true })
    return pairs.some(({ sends, receives }) => sends === 'shm' && receives === 'shm')
  })
})
