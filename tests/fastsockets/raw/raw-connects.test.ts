/** `connect` of raw sockets: which hosts there are, and signals that end it at any step. */
import { execFileSync } from 'node:child_process'
import { getEventListeners, once } from 'node:events'
import { closeSync, constants, openSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { CANDIDATE_COUNT, hashedPort } from '../../../fastsockets/bootstrap/hashed-port.ts'
import { connect, listen } from '../../../fastsockets/raw/index.ts'
import { withWatchdog } from '../../support/until.ts'

const REASON = new Error('enough')
/** Node's default. */
const POOL_SIZE = Number(process.env.UV_THREADPOOL_SIZE || 4)
/** As long as it may be asked to wait for a greeting. */
const LONG_MS = 60_000

/** Takes connections and says nothing. */
async function silentServer(t: Test, port: number): Promise<Server> {
  const sockets: Socket[] = []
  const server = createServer(socket => void sockets.push(socket.on('error', () => {})))
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return server
}

/** A port without a bootstrap; `isCalled` once the fast way is looked for there. */
async function silentPort(t: Test): Promise<{ port: number; isCalled: Promise<unknown> }> {
  for (;;) {
    const { port } = (await silentServer(t, 0)).address() as AddressInfo
    try {
      const servers: Server[] = []
      for (let candidate = 0; candidate < CANDIDATE_COUNT; candidate++)
        servers.push(await silentServer(t, hashedPort(port, candidate)))
      return { port, isCalled: once(servers[0] as Server, 'connection') }
    } catch (error) {
      // Another program has a candidate at the moment.
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    }
  }
}

t.test('no host, and an empty one, are localhost', async t => {
  const server = await listen({ host: '127.0.0.1' })
  t.teardown(() => server.close())
  const { port } = server.address
  for (const host of ['', undefined, null, 'localhost'] as string[]) {
    const [near, far] = await Promise.all([connect({ port, host }), server.accept()])
    t.equal(near.transport.transport, 'shm', `host ${JSON.stringify(host)}`)
    near.close()
    far.close()
  }
})

t.test('a signal ends a connect while the name is being resolved', async t => {
  // Names are resolved by threads that have all got something else to wait for.
  const folder = t.testdir()
  const pipes = Array.from({ length: POOL_SIZE }, (_, i) => join(folder, `pipe-${i}`))
  execFileSync('mkfifo', pipes)
  const opened = pipes.map(path => open(path, 'r'))
  const controller = new AbortController()
  const { signal } = controller
  const connecting = connect({ port: 9, host: 'localhost', signal })
  controller.abort(REASON)
  try {
    await t.rejects(withWatchdog('the connect', connecting), REASON)
  } finally {
    const writers = pipes.map(path => openSync(path, constants.O_WRONLY))
    for (const file of await Promise.all(opened)) await file.close()
    for (const writer of writers) closeSync(writer)
  }
  t.strictSame(getEventListeners(signal, 'abort'), [])
})

t.test('a signal ends a connect while the fast way is looked for', async t => {
  const { FASTSOCKETS_GREETING_TIMEOUT_MS: before } = process.env
  process.env.FASTSOCKETS_GREETING_TIMEOUT_MS = String(LONG_MS)
  t.teardown(() => {
    if (before === undefined) delete process.env.FASTSOCKETS_GREETING_TIMEOUT_MS
    else process.env.FASTSOCKETS_GREETING_TIMEOUT_MS = before
  })
  const { port, isCalled } = await silentPort(t)
  const controller = new AbortController()
  const { signal } = controller
  const connecting = connect({ port, host: '127.0.0.1', signal })
  await isCalled
  controller.abort(REASON)
  await t.rejects(withWatchdog('the connect', connecting, LONG_MS / 4), REASON)
  t.strictSame(getEventListeners(signal, 'abort'), [])
})

t.test('what is found for a connect that was given up serves the next', async t => {
  const server = await listen({ host: '127.0.0.1' })
  t.teardown(() => server.close())
  const target = { port: server.address.port, host: '127.0.0.1' }
  const controller = new AbortController()
  const { signal } = controller
  const given = connect({ ...target, signal })
  const kept = connect({ ...target, signal: new AbortController().signal })
  controller.abort(REASON)
  await t.rejects(given, REASON)
  const [near, far] = await Promise.all([kept, server.accept()])
  t.equal(near.transport.transport, 'shm')
  t.equal(server.tryAccept(), undefined, 'the other one brought no connection')
  near.close()
  far.close()
})

t.test('a signal is not listened to any more once the connect is over', async t => {
  const server = await listen({ host: '127.0.0.1' })
  const { port } = server.address
  const { signal } = new AbortController()
  for (const host of ['localhost', '127.0.0.1']) {
    const near = await connect({ port, host, signal })
    const far = await server.accept()
    near.close()
    far.close()
  }
  server.close()
  await t.rejects(connect({ port: 1, host: 'localhost', signal }), { code: 'ECONNREFUSED' })
  await t.rejects(connect({ port: 1, host: 'name.invalid', signal }), { code: /^(ENOTFOUND|EAI_AGAIN)$/ })
  t.strictSame(getEventListeners(signal, 'abort'), [])
})
