/** What `write` has taken arrives whatever the writer does next, and its memory is the program's; received chunks are, too. */
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import net, { type AddressInfo, type Socket, transportOf } from '../../../fastsockets/index.ts'
import { WINDOW } from '../../../fastsockets/stream/stream-layout.ts'
import { isOverBudget, setUnreadBudget } from '../../../fastsockets/stream/unread-budget.ts'
import { Child } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'
import { until, withWatchdog } from '../../support/until.ts'

async function listening(t: Test, accept: (socket: Socket) => void): Promise<number> {
  const server = net.createServer(accept).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

for (const act of ['kill', 'abort', 'reallyExit', 'block']) {
  t.test(`a small write, and then ${act}: it arrives at once`, async t => {
    let text = ''
    let transport = ''
    let isClosed = false
    const port = await listening(t, socket => {
      transport = transportOf(socket).transport
      socket.on('data', data => {
        text += data
      })
      socket
        .on('error', () => {})
        .on('close', () => {
          isClosed = true
        })
    })
    const child = new Child(t, program('written'), [String(port), act], relinked())
    await until('the words', () => text !== '')
    t.equal(text, 'last words')
    t.equal(transport, 'shm')
    if (act === 'block') t.notOk(isClosed, 'while the writer still waits')
    else await withWatchdog('its end', child.exited)
  })
}

const hasEnded = (pid: number): boolean => readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') Z ')

for (const isBusy of [false, true])
  for (const act of ['exit', 'reallyExit', 'kill'])
    for (const kind of ['address', 'path'])
      t.test(
        `a second connect to ${kind} of a server that is ${isBusy ? 'busy' : 'idle'}, 1 MB within 'connect', and then ${act}`,
        // Before 20.3 'connect' waits for the answer.
        { skip: isBusy && process.versions.node.startsWith('20.2.') && 'needs Node 20.3' },
        async t => {
          const length = 1_000_000
          let received = 0
          const transports: string[] = []
          let child: Child | undefined
          const server = net.createServer(socket => {
            transports.push(transportOf(socket).transport)
            socket
              .on('error', () => {})
              .on('data', data => {
                received += data.length
              })
            if (transports.length > 1) return
            socket.write('now')
            const pid = child?.process.pid as number
            const until = Date.now() + 20_000
            while (isBusy && !hasEnded(pid) && Date.now() < until);
          })
          const folder = mkdtempSync(join(tmpdir(), 'left-'))
          t.teardown(() => rmSync(folder, { recursive: true }))
          server.listen(kind === 'path' ? join(folder, 'path') : { port: 0, host: '127.0.0.1' })
          t.teardown(() => server.close())
          await once(server, 'listening')
          const address = server.address() as AddressInfo | string
          const place = typeof address === 'string' ? address : String(address.port)
          child = new Child(t, program('leaving'), [place, String(length), act], relinked())
          await withWatchdog('its end', child.exited)
          await until('all of it', () => received === length)
          t.strictSame(transports, ['shm', 'shm'])
        },
      )

/** Two sockets of this process. */
async function pair(t: Test): Promise<[Socket, Socket]> {
  const accepted = new Promise<Socket>(resolve => void listening(t, resolve).then(connect))
  let client: Socket | undefined
  function connect(port: number): void {
    client = net.connect(port, '127.0.0.1')
  }
  const server = await accepted
  const socket = client as unknown as Socket
  if (socket.connecting) await once(socket, 'connect')
  t.teardown(() => [socket, server].map(one => one.destroy()))
  return [socket, server]
}

t.test('two peers that write before they read', async t => {
  const sockets = await pair(t)
  const bytes = Buffer.alloc(WINDOW, 7)
  await withWatchdog(
    'both writes',
    Promise.all(sockets.map(socket => new Promise(resolve => socket.pause().write(bytes, resolve)))),
  )
  for (const socket of sockets) {
    let received = 0
    socket.on('data', ({ length }) => {
      received += length
    })
    socket.resume()
    await until('all of it', () => received === WINDOW)
  }
})

t.test('memory is used again after write, and chunks are transferred within their event', async t => {
  const [near, far] = await pair(t)
  const length = 3 * WINDOW
  let received = 0
  let wrong = 0
  far.on('data', chunk => {
    received += chunk.length
    for (let i = 0; i < chunk.length; i += 997) if (chunk[i] !== 7) wrong++
    structuredClone(chunk.buffer, { transfer: [chunk.buffer as ArrayBuffer] })
  })
  const bytes = Buffer.alloc(length, 7)
  near.write(bytes)
  bytes.fill(0)
  await until('all of it', () => received === length)
  t.equal(wrong, 0)
})

t.test('over the budget windows shrink, and bytes still arrive', async t => {
  const [near, far] = await pair(t)
  far.pause()
  near.write(Buffer.alloc(WINDOW))
  setUnreadBudget(0)
  t.teardown(() => setUnreadBudget())
  await until('bytes that are kept', isOverBudget)
  let received = 0
  far.on('data', ({ length }) => {
    received += length
  })
  far.resume()
  for (let i = 0; i < 4; i++) near.write(Buffer.alloc(WINDOW))
  await until('all of it', () => received === 5 * WINDOW)
})
