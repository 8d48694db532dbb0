/**
 * What the kernel says of TCP sockets: the owner of a listener, by which a client judges whether another
 * user's process may serve a port, and of the other end of a connection. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { fstatSync } from 'node:fs'
import net, { type AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { isListenerOf } from '../../../nic/index.ts'
import { findTcpSocket, TCP_ESTABLISHED, TCP_LISTEN } from '../../../nic/posix/tcp-sockets.ts'
import { Child } from '../../support/child.ts'
import { NOBODY, noOtherUser } from '../../support/other-user.ts'
import { program } from '../../support/relinked.ts'

const OWN = process.geteuid?.() ?? 0

async function listen(t: Test, host: string, ipv6Only = false): Promise<number> {
  const server = net.createServer().listen({ port: 0, host, ipv6Only })
  await once(server, 'listening')
  t.teardown(() => void server.close())
  return (server.address() as AddressInfo).port
}

function inodeOf(socket: net.Socket): number {
  return fstatSync((socket as unknown as { _handle: { fd: number } })._handle.fd).ino
}

t.test('listeners on an address, and on all', async t => {
  for (const [host, address, ipv6Only] of [
    ['127.0.0.1', '127.0.0.1', false],
    ['0.0.0.0', '127.0.0.1', false],
    ['::', '127.0.0.1', false],
    ['::1', '::1', false],
    ['::', '::1', true],
  ] as const) {
    const port = await listen(t, host, ipv6Only)
    t.ok(isListenerOf(OWN, address, port), `${host} for ${address}`)
    t.notOk(isListenerOf(OWN + 1, address, port))
  }
})

t.test('no listener, or one on another address', async t => {
  t.notOk(isListenerOf(OWN, '127.0.0.1', await listen(t, '127.0.0.2')))
  const port = await listen(t, '127.0.0.1')
  t.notOk(isListenerOf(OWN, '::1', port))
  t.notOk(isListenerOf(OWN, '127.0.0.1', 1))
})

t.test('both ends of a connection, and no connection that does not exist', async t => {
  for (const [host, near] of [
    ['127.0.0.1', '127.0.0.1'],
    ['::', '127.0.0.1'],
    ['::', '::1'],
  ] as const) {
    const server = net.createServer().listen({ port: 0, host })
    t.teardown(() => void server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const client = net.connect({ port, host: near })
    const [[accepted]] = (await Promise.all([once(server, 'connection'), once(client, 'connect')])) as [
      [net.Socket],
      unknown,
    ]
    const ours = { address: accepted.localAddress as string, port }
    const theirs = { address: accepted.remoteAddress as string, port: accepted.remotePort as number }
    const found = { state: TCP_ESTABLISHED, uid: OWN, bytes: { in: 0, out: 0 } }
    const far = { ...found, inode: inodeOf(client) }
    t.strictSame(findTcpSocket(theirs, ours), far, `${host} called at ${near}`)
    t.strictSame(findTcpSocket(ours, theirs), { ...found, inode: inodeOf(accepted) })
    t.equal(findTcpSocket(ours, { ...theirs, port: 1 })?.state, TCP_LISTEN, 'only the listener')
    t.equal(findTcpSocket({ ...theirs, address: host === '::' ? '::2' : '127.0.0.2' }, ours), undefined)
    const closed = Promise.all([once(client, 'close'), once(accepted.resume(), 'close')])
    client.end()
    await closed
    t.not(findTcpSocket(theirs, ours)?.state, TCP_ESTABLISHED)
  }
})

t.test('without a free descriptor the kernel is not asked', async t => {
  const port = await listen(t, '127.0.0.1')
  const url = new URL('../../../nic/posix/tcp-sockets.js', import.meta.url)
  const script = `const { findTcpSocket } = await import(${JSON.stringify(url.href)})
    const { openSync, closeSync } = await import('node:fs')
    const find = () => findTcpSocket({ address: '127.0.0.1', port: ${port} })?.state ?? 'none'
    const before = find()
    const opened = []
    try { for (;;) opened.push(openSync('/dev/null')) } catch {}
    const without = find()
    for (const fd of opened) closeSync(fd)
    console.log(before, without, find())`
  const line = `ulimit -n 100; exec "$0" --input-type=module -e "$1"`
  const { stdout, stderr } = spawnSync('sh', ['-c', line, process.execPath, script], { encoding: 'utf8' })
  t.equal(stdout, `${TCP_LISTEN} none ${TCP_LISTEN}\n`, stderr)
})

t.test('a listener of another user', { skip: noOtherUser(program('server')) }, async t => {
  const server = new Child(t, program('server'), ['echo'], { uid: NOBODY, gid: NOBODY })
  const { port } = await server.receive<{ port: number }>()
  t.ok(isListenerOf(NOBODY, '127.0.0.1', port))
  t.notOk(isListenerOf(OWN, '127.0.0.1', port))
})
