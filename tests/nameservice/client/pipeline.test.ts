/** Questions that share a connection: what comes of them, however the answers arrive. */
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Reply } from '../../../nameservice/client/reply-reader.ts'
import { ReplyReader } from '../../../nameservice/client/reply-reader.ts'
import { NameClient } from '../../../nameservice/index.ts'
import { Child } from '../../support/child.ts'
import { Named, temporaryFolder } from '../../support/named.ts'

const answer = (text: string, status = '200 OK', more = '') =>
  `HTTP/1.1 ${status}\r\nContent-Length: ${Buffer.byteLength(text)}\r\nfastsockets-cursor: c-1\r\n${more}\r\n${text}`

t.test('replies are taken apart, in whatever pieces they come', async t => {
  const stream = Buffer.from(
    `HTTP/1.1 100 Continue\r\n\r\n${answer('first')}${answer('zweite: ä', '404 Not Found', 'fastsockets-stale: true\r\n')}` +
      `HTTP/1.1 204 No Content\r\n\r\n${answer('last', '503 Service Unavailable', 'connection: close\r\n')}`,
  )
  const wanted = [
    [{ status: 200, text: 'first', cursor: 'c-1', isStale: false }, false],
    [{ status: 404, text: 'zweite: ä', cursor: 'c-1', isStale: true }, false],
    [{ status: 204, text: '', cursor: undefined, isStale: false }, false],
    [{ status: 503, text: 'last', cursor: 'c-1', isStale: false }, true],
  ]
  for (const size of [1, 2, 3, 7, 64, stream.length]) {
    const seen: [Reply, boolean][] = []
    const reader = new ReplyReader((reply, isLast) => seen.push([reply, isLast]))
    for (let at = 0; at < stream.length; at += size) reader.read(stream.subarray(at, at + size))
    t.strictSame(seen, wanted, `pieces of ${size} bytes`)
  }
})

t.test('what is no reply of the daemon is refused', async t => {
  const strange = [
    'SSH-2.0-x\r\n\r\n',
    'HTTP/1.1 200 OK\r\n\r\n',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    'HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n',
    'HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\n',
    'x'.repeat(20_000),
  ]
  for (const text of strange) {
    const reader = new ReplyReader(() => t.fail('this is no reply'))
    t.throws(() => reader.read(Buffer.from(text)), { code: 'ERR_NAMES_PROTOCOL' }, text.slice(0, 60))
  }
})

t.test('many questions share a connection, and each gets its own answer', async t => {
  const connections: Socket[] = []
  const path = await serve(t, socket => {
    connections.push(socket)
    answerAll(socket, (name, i) => (i % 3 === 0 ? undefined : entryJson(name)))
  })
  const client = new NameClient({ address: `unix:${path}` })
  t.teardown(() => client.close())
  const names = Array.from({ length: 1000 }, (_, i) => `n/${i}`)
  const answers = await Promise.all(names.map(name => client.api.lookUp(name)))
  t.equal(connections.length, 1)
  const found = answers.filter(({ entry }) => entry !== undefined)
  t.equal(found.length, names.length - Math.ceil(names.length / 3))
  t.ok(answers.every(({ entry }, i) => entry === undefined || entry.name === names[i]))
})

t.test(
  'a server that does not answer in time is asked on a new connection, and late answers reach no other request',
  async t => {
    let count = 0
    const path = await serve(t, socket => {
      count += 1
      if (count > 1) return answerAll(socket, entryJson)
      // The first one never answers.
      socket.on('data', () => {})
    })
    const client = new NameClient({ address: `unix:${path}` })
    t.teardown(() => client.close())
    await t.rejects(client.api.lookUp('a', { timeoutMs: 50 }), { code: 'ERR_NAMES_UNAVAILABLE' })
    t.match(await client.api.lookUp('b'), { entry: { name: 'b' } })
    t.equal(count, 2)
  },
)

t.test('a connection that ends under a question is replaced once, if it had answered before', async t => {
  let count = 0
  const path = await serve(t, socket => {
    count += 1
    let asked = 0
    socket.on('data', () => {
      asked += 1
      if (asked === 2) socket.destroy()
      else socket.write(answer(entryJson('a')).replace('c-1', CURSOR))
    })
  })
  const client = new NameClient({ address: `unix:${path}` })
  t.teardown(() => client.close())
  for (let i = 0; i < 3; i++) t.match(await client.api.lookUp('a'), { entry: { name: 'a' } })
  t.equal(count, 3)
})

/** Calls `answerName` for each look-up, and answers them in pieces that do not end where answers do. */
function answerAll(socket: Socket, answerName: (name: string, index: number) => string | undefined): void {
  let text = ''
  let rest = ''
  let index = 0
  socket.setEncoding('utf8').on('data', (piece: string) => {
    text += piece
    const requests = text.split('\r\n\r\n')
    text = requests.pop() as string
    const names = requests.map(request =>
      decodeURIComponent(/^GET \/v1\/names\/(\S+) /.exec(request)?.[1] ?? ''),
    )
    const answers = names.map(name => {
      const found = answerName(name, index++)
      return found === undefined ? answer(NO_SUCH_NAME, '404 Not Found') : answer(found)
    })
    // More questions may come before the immediate.
    const bytes = rest + answers.join('').replaceAll('c-1', CURSOR)
    rest = bytes.slice(bytes.length >> 1)
    socket.write(bytes.slice(0, bytes.length >> 1))
    setImmediate(() => {
      socket.write(rest)
      rest = ''
    })
  })
}

const CURSOR = '0123456789ab-1'
const NO_SUCH_NAME = JSON.stringify({
  type: 'urn:fastsockets:problem:no-such-name',
  title: '',
  status: 404,
  detail: '',
})

function entryJson(name: string): string {
  const record = {
    kind: 'endpoint',
    endpoint: 'e',
    host: '',
    pid: 1,
    uid: 1,
    drivers: [],
    tag: '0000000000000000',
    version: 1,
    labels: {},
  }
  return JSON.stringify({ name, revision: 1, lease: '0000000000000000', owner: 'uid:1', record })
}

async function serve(t: Test, handle: (socket: Socket) => void): Promise<string> {
  const path = join(temporaryFolder(t), 's')
  const sockets = new Set<Socket>()
  const server: Server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    handle(socket)
  })
  await new Promise<void>(resolve => server.listen(path, resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return path
}

t.test('a question that the daemon hangs up on takes no other with it', async t => {
  const { address } = await Named.start(t)
  const client = new NameClient({ address })
  t.teardown(() => client.close())
  const [before, refused, after] = await Promise.allSettled([
    client.api.lookUp('a/1'),
    client.api.listPage('x'.repeat(20_000)),
    client.api.lookUp('a/2'),
  ])
  t.match([before.status, after.status], ['fulfilled', 'fulfilled'])
  t.match(refused, { status: 'rejected', reason: { code: 'ERR_NAMES_REFUSED' } })
})

t.test('what waits behind questions in the background keeps the program alive', async t => {
  const path = await serve(t, socket => {
    setTimeout(() => answerAll(socket, entryJson), 300)
  })
  const child = new Child(t, new URL('./pipeline-child.js', import.meta.url), [path])
  t.strictSame(await child.receive(), { name: 'n/last' })
})
