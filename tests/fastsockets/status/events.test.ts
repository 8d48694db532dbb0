/** What a program may hear of its sockets, and show to prom-client. */
import diagnostics from 'node:diagnostics_channel'
import { once } from 'node:events'
import { Registry } from 'prom-client'
import t, { type Test } from 'tap'
import { CANDIDATE_COUNT, hashedPort } from '../../../fastsockets/bootstrap/hashed-port.ts'
import net, { type AddressInfo } from '../../../fastsockets/index.ts'
import { registerMetrics } from '../../../fastsockets/metrics.ts'
import type { ThreadStatus } from '../../../fastsockets/status/decode-status.ts'
import type { ListeningEvent } from '../../../fastsockets/status/events.ts'
import { readStatusOf } from '../../../fastsockets/status/read-status.ts'
import { markOwn } from '../../../nic/index.ts'
import { Child } from '../../support/child.ts'
import { program, relinked } from '../../support/relinked.ts'
import { until } from '../../support/until.ts'

interface Heard {
  readonly name: string
  readonly event: Record<string, unknown>
}

t.test('the diagnostics channels tell of connections, their ends, fallbacks and listeners', async t => {
  const heard: Heard[] = []
  for (const name of ['connection', 'close', 'fallback', 'listening']) {
    const listener = (event: unknown): void => void heard.push({ name, event: event as Heard['event'] })
    diagnostics.subscribe(`fastsockets:${name}`, listener)
    t.teardown(() => diagnostics.unsubscribe(`fastsockets:${name}`, listener))
  }
  const find = (name: string) =>
    until(name, () => heard.find(({ name: other }) => other === name)).then(({ event }) => event)

  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  t.match(await find('listening'), { local: { address: '127.0.0.1', port }, hashedPort: Number })
  server.close()

  const echo = new Child(t, program('server'), ['echo'], relinked())
  const remote = { address: '127.0.0.1', port: (await echo.receive<{ port: number }>()).port }
  const socket = net.connect(remote.port, '127.0.0.1')
  socket.end('hello')
  socket.resume()
  await once(socket, 'close')
  t.match(await find('connection'), { transport: 'shm', role: 'client', remote })
  t.match(await find('close'), { transport: 'shm', role: 'client', remote, bytesIn: 5, bytesOut: 5 })

  const plain = new Child(t, program('server'), ['echo'])
  const place = { address: '127.0.0.1', port: (await plain.receive<{ port: number }>()).port }
  // The second one's reason is known before it begins.
  for (let count = 1; count <= 2; count++) {
    const other = net.connect(place.port, place.address)
    await once(other, 'connect')
    const { socket, remote, ...rest } = heard.filter(({ name }) => name === 'fallback').at(-1)?.event ?? {}
    t.match(rest, { role: 'client', reason: { code: 'NOT_RELINKED' } })
    t.equal(socket, other)
    t.strictSame(remote, place)
    other.destroy()
  }
})

t.test('what a socket wrote in the turn in which it was destroyed is counted', async t => {
  const heard: { readonly bytesOut: number }[] = []
  const listener = (event: unknown): void => void heard.push(event as { bytesOut: number })
  diagnostics.subscribe('fastsockets:close', listener)
  t.teardown(() => diagnostics.unsubscribe('fastsockets:close', listener))
  const echo = new Child(t, program('server'), ['echo'], relinked())
  const socket = net.connect((await echo.receive<{ port: number }>()).port, '127.0.0.1')
  await once(socket, 'connect')
  socket.write('reply')
  socket.destroy()
  t.match(await until('the close', () => heard[0]), { role: 'client', bytesOut: 5 })
})

t.test('prom-client shows what is counted', async t => {
  const registry = new Registry()
  registerMetrics({ registry })
  const echo = new Child(t, program('server'), ['echo'], relinked())
  const socket = net.connect((await echo.receive<{ port: number }>()).port, '127.0.0.1')
  socket.write('hello')
  await once(socket, 'data')
  const value = async (line: RegExp): Promise<number> => Number(line.exec(await registry.metrics())?.[1])
  t.equal(await value(/^fastsockets_connections\{transport="shm",reason=""\} (\d+)$/m), 1)
  const bytes = await value(/^fastsockets_bytes_total\{direction="in"\} (\d+)$/m)
  t.ok(bytes >= 5)
  t.equal(await value(/^fastsockets_bytes_total\{direction="in"\} (\d+)$/m), bytes, 'to look does not count')
  t.ok((await value(/^fastsockets_connections_opened_total (\d+)$/m)) >= 1)
  t.ok((await value(/^fastsockets_fallbacks_total\{reason="NOT_RELINKED"\} (\d+)$/m)) >= 1)
  t.equal(await value(/^fastsockets_promotions_total\{direction="fast"\} (\d+)$/m), 0)
  t.ok((await value(/^fastsockets_credit_bytes (\d+)$/m)) > 0)
  t.ok((await value(/^fastsockets_poller_total\{event="messages"\} (\d+)$/m)) > 0)
  // What they say where there is a device: tests/rdma.
  t.notMatch(await registry.metrics(), /^fastsockets_verbs_\w+\{/m, 'nothing of a driver that is not in use')
  socket.destroy()
})

t.test(
  'the diagnostics channels of node:net tell of the servers and sockets of the program, and of no others',
  async t => {
    const heardBy = async (options: object | undefined) => {
      const server = new Child(t, program('channels'), [], options)
      const heard: string[] = []
      const next = async (): Promise<{ told?: string; port?: number; isOver?: true }> => {
        const message = await server.receive<{ told?: string; port?: number; isOver?: true }>()
        if (message.told === undefined) return message
        heard.push(message.told)
        return await next()
      }
      const { port } = await next()
      const client = new Child(t, program('client'), [String(port)], options)
      await client.receive()
      server.send({})
      await next()
      const echo = new Child(t, program('server'), ['echo'], options)
      server.send(await echo.receive<{ port: number }>())
      await next()
      await client.kill()
      await echo.kill()
      await server.kill()
      return heard.sort()
    }
    const plain = await heardBy(undefined)
    for (const name of ['net.server.socket', 'net.client.socket']) t.ok(plain.includes(name), name)
    t.strictSame(await heardBy(relinked()), plain)
  },
)

t.test(
  'a listener whose hashed port is wanted by the program, and that finds no other, says why it is slow',
  async t => {
    const server = net.createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => void server.close())
    const { port } = server.address() as AddressInfo
    const rowOf = ({ listeners }: ThreadStatus) =>
      listeners.find(({ local }) => local === `127.0.0.1:${port}`)
    const before = ownStatus()
    const used = rowOf(before)?.hashedPort as number
    for (let candidate = 0; candidate < CANDIDATE_COUNT; candidate++) {
      if (hashedPort(port, candidate) !== used) await squat(t, hashedPort(port, candidate))
    }
    const heard: unknown[] = []
    const listener = (event: unknown): void => {
      if ((event as ListeningEvent).local.port === port) heard.push(event)
    }
    diagnostics.subscribe('fastsockets:listening', listener)
    t.teardown(() => diagnostics.unsubscribe('fastsockets:listening', listener))
    // The program's own.
    await squat(t, used, false)
    t.match(await until('the event', () => heard[0]), { reason: { code: 'PORTS_TAKEN' } })
    const after = ownStatus()
    t.equal(after.fallbacks.PORTS_TAKEN, (before.fallbacks.PORTS_TAKEN ?? 0) + 1)
    t.match(rowOf(after), { reason: 'PORTS_TAKEN' })
  },
)

function ownStatus(): ThreadStatus {
  return readStatusOf(process.pid)[0] as ThreadStatus
}

async function squat(t: Test, port: number, isOwn = true): Promise<void> {
  const squatter = new net.Server(socket => socket.destroy())
  if (isOwn) markOwn(squatter)
  squatter.on('error', () => {})
  squatter.listen(port, '127.0.0.1')
  t.teardown(() => void squatter.close())
  await new Promise<void>(resolve => {
    squatter.once('listening', () => resolve()).once('error', () => resolve())
  })
}
