/** Sockets and servers that are handed to child processes. */
import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import net, { type AddressInfo, transportOf } from '../../../fastsockets/index.ts'
import { decodeNames, encodeNames } from '../../../fastsockets/relink/bridge-names.ts'
import { readStatusOf } from '../../../fastsockets/status/read-status.ts'
import { Child, plainEnvironment } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'
import { eventually } from '../../support/until.ts'

/** Required, not imported: a child that imports may be handed something before it is relinked. */
const REGISTER = fileURLToPath(new URL('../../../fastsockets/register.cjs', import.meta.url))

/** Sockets, of which the last one or two may be held by what the last message was about. */
const SENT = 3

interface Started {
  readonly parent: Child
  readonly port: number
}

async function start(t: Test, what: string, preload = REGISTER, env = plainEnvironment()): Promise<Started> {
  const parent = new Child(t, program('handing-server'), [what, preload], relinked({ env }))
  return { parent, port: (await parent.receive<{ port: number }>()).port }
}

/** What comes back for `text`, and that it came by this wire. */
async function echo(t: Test, port: number, text: string, transport = 'shm'): Promise<string> {
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.end(text)
  const received = String(Buffer.concat(await socket.toArray()))
  t.equal(transportOf(socket).transport, transport)
  return received
}

t.test('a fast socket that is sent to a child', async t => {
  const { parent, port } = await start(t, 'socket')

  await t.test('is served by the child, which knows its ends', async t => {
    const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    await once(socket, 'connect')
    t.equal(transportOf(socket).transport, 'shm')
    const { localPort } = socket
    const sent = randomBytes(3_000_000)
    socket.end(sent)
    const received = Buffer.concat(await socket.toArray())
    t.ok(received.equals(sent), 'all bytes come back, then the end')
    const told = [await parent.receive(), await parent.receive(), await parent.receive()]
    const names = ['127.0.0.1', port, '127.0.0.1', localPort]
    t.match(new Set(told), new Set([{ sent: 'ok' }, { names }, { closed: true }]))
  })

  await t.test('ends there when the peer resets it', async t => {
    const socket = net.connect(port, '127.0.0.1')
    socket.write('who')
    await once(socket, 'data')
    socket.resetAndDestroy()
    const told = [await parent.receive(), await parent.receive(), await parent.receive()]
    t.ok(
      told.some(message => 'closed' in (message as object)),
      JSON.stringify(told),
    )
  })

  await t.test('ends when the child dies', async () => {
    const socket = net.connect(port, '127.0.0.1')
    socket.write('who')
    await once(socket, 'data')
    const end = once(socket, 'end')
    socket.resume()
    parent.send({ killChild: true })
    await end
  })
})

t.test('keep-open: the parent and the child have the same connection', async t => {
  const { port } = await start(t, 'keep-open')
  t.match(await echo(t, port, 'child '), /parent/)
})

t.test('a child that is not relinked is handed a fast socket, too', async t => {
  const { port } = await start(t, 'socket', '')
  t.equal(await echo(t, port, 'hello'), 'hello')
})

t.test('stdio: a fast socket is the standard input and output of a child', async t => {
  const { port } = await start(t, 'stdio')
  t.equal(await echo(t, port, 'through cat'), 'through cat')
})

for (const [child, preload, transport] of [
  ['relinked', REGISTER, 'shm'],
  ['not relinked', '', 'tcp'],
] as const) {
  t.test(`a server is handed to a child that is ${child}: it accepts over ${transport}`, async t => {
    const { port } = await start(t, 'server', preload)
    t.equal(await echo(t, port, 'hello', transport), 'hello')
  })
}

t.test('a socket that is not connected yet cannot be sent, which is said at once, and goes on', async t => {
  const server = net.createServer(socket => socket.pipe(socket)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  const { port } = server.address() as AddressInfo
  const child = fork(program('handed-child'), { env: plainEnvironment() })
  t.teardown(() => void child.kill('SIGKILL'))
  const socket = net.connect(port, '127.0.0.1')
  const isSent = child.send({ hand: 'socket' }, socket, error => {
    t.match(error, { code: 'ERR_FASTSOCKETS_SEND', message: /policy/ })
  })
  t.equal(isSent, false)
  const failed = once(child, 'error')
  child.send({ hand: 'socket' }, socket)
  const [error] = await failed
  t.match(error, { code: 'ERR_FASTSOCKETS_SEND' }, 'without a callback the child emits it')
  socket.end('hello')
  t.equal(String(Buffer.concat(await socket.toArray())), 'hello')
})

for (const when of ['at-once', 'later']) {
  for (const [client, options, accepted, fallbacks] of [
    ['relinked', relinked(), { acceptedFast: SENT, acceptedTcp: 0 }, {}],
    ['plain', {}, { acceptedFast: 0, acceptedTcp: SENT }, { ACCEPTED: SENT }],
  ] as const) {
    t.test(
      `sockets of a ${client} client that are sent ${when} are kept by nobody, and shown no more`,
      async t => {
        const parent = new Child(
          t,
          program('sending-parent'),
          [when],
          relinked({ execArgv: ['--expose-gc'] }),
        )
        const { port } = await parent.receive<{ port: number }>()
        for (let i = 0; i < SENT; i++) {
          const sender = new Child(t, program('client'), [String(port)], options)
          await sender.receive()
          await sender.receive()
        }
        const status = await eventually('the end of the rows', () => {
          const [status] = readStatusOf(parent.pid)
          return status?.sockets.length === 0 && status
        })
        t.match(status, { listeners: [accepted] })
        t.strictSame(status.fallbacks, fallbacks)
        await eventually('the end of the sockets', async () => {
          const { left } = await parent.ask<{ left: number }>({})
          return left < SENT
        })
      },
    )
  }
}

t.test('a policy keeps the port on TCP: the kernel hands the socket over', async t => {
  const folder = t.testdir({ 'policy.yaml': 'rules: [{ role: server, use: tcp }]' })
  const env = { ...plainEnvironment(), FASTSOCKETS_POLICY: `${folder}/policy.yaml` }
  const { parent, port } = await start(t, 'paused', REGISTER, env)
  t.equal(await echo(t, port, 'hello', 'tcp'), 'hello')
  const told = [await parent.receive(), await parent.receive()]
  t.match(new Set(told), new Set([{ sent: 'ok' }, { names: ['127.0.0.1', port] }]))
})

t.test('names of ends are what was said, and nothing else is one', async t => {
  const names = {
    local: { address: '::ffff:127.0.0.1', family: 'IPv6', port: 1 },
    remote: { address: '::1', family: 'IPv6', port: 65535 },
  }
  t.same(decodeNames(encodeNames(names)), names)
  for (const name of [
    '',
    'fs-ends-',
    'fs-ends-00000000-127.0.0.1,1,127.0.0.1,65536',
    'fs-ends-00000000-127.0.0.1,1,127.0.0.1,0',
    'fs-ends-00000000-127.0.0,1,127.0.0.1,1',
    'fs-ends-00000000-127.0.0.1,1,127.0.0.1,1\n',
  ])
    t.equal(decodeNames(name), undefined, JSON.stringify(name))
})

t.test('a socket that started on TCP and moved is sent without a bridge', async t => {
  const env = { ...plainEnvironment(), FASTSOCKETS_START: 'tcp', FASTSOCKETS_ABLATE: 'price=0' }
  const parent = new Child(t, program('handing-moved'), [], relinked({ env }))
  const { port } = await parent.receive<{ port: number }>()
  const client = new Child(t, program('handed-client'), [String(port)], relinked({ env }))
  const told = await client.receive<object>()
  t.strictSame(told, { before: 'shm', after: 'tcp', isRight: true })
  t.match(await parent.receive(), { handle: 'TCP', names: ['127.0.0.1', port] })
  t.equal(await parent.receive(), 'nothing', 'what was sent after it comes after it')
  await client.kill()
})
