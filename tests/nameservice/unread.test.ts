/** Unread answers are kept up to a limit only. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { Named, RawWatch } from '../support/named.ts'
import { eventually } from '../support/until.ts'

const DRIVERS = Array.from({ length: 14 }, () => ({ name: 'shm', address: 'A'.repeat(4096) }))
const NAMES = 80
const LISTING = 'GET /v1/names?limit=1000 HTTP/1.1\r\nhost: x\r\n\r\n'

t.test('one write that asks for more than the daemon has memory for', async t => {
  const named = await withLongRecords(t, ['--max-old-space-size=96'])
  const many = await unread(t, named)
  many.write(LISTING.repeat(1000))
  t.equal((await named.ask('GET', '/healthz')).status, 200)
  many.resume()
  await eventually('the end of the connection', () => many.destroyed)
  const some = await unread(t, named)
  some.write(LISTING.repeat(60))
  const next = await unread(t, named)
  next.write(LISTING.repeat(60))
  await eventually('all of them to be answered', async () => {
    const { text } = await named.ask('GET', '/metrics')
    const asked = [...text.matchAll(/requests_total\{operation="listNames",status="\d+"\} (\d+)/g)]
    return asked.reduce((sum, [, count]) => sum + Number(count), 0) >= 120
  })
  t.equal((await named.ask('GET', '/healthz')).status, 200)

  // A client that reads them gets them all; those that were too much are refused.
  let text = ''
  some.setEncoding('latin1').on('data', chunk => {
    text += chunk
  })
  const statuses = await eventually('the answers', () => {
    const found = [...text.matchAll(/HTTP\/1.1 (\d+) /g)].map(([, status]) => Number(status))
    return found.length === 60 && found
  })
  t.equal(statuses[0], 200)
  t.strictSame([...new Set(statuses)], [200, 429])
  t.match(text, /urn:fastsockets:problem:rate.*retryAfterMs/)
  const { api } = named.client()
  const pages = await Promise.all(Array.from({ length: 30 }, () => api.listPage('n/')))
  t.ok(
    pages.every(({ entries }) => entries.length > 10),
    'the client comes again by itself',
  )
})

t.test('a connection whose answer is not read is given up', async t => {
  const named = await withLongRecords(t, [], ['--limits-idle-ms', '500'])
  const countOf = async () => {
    const { text } = await named.ask('GET', '/metrics')
    return Number(/^fastsockets_named_connections (\d+)$/m.exec(text)?.[1])
  }
  const watch = await new RawWatch(t, named).started()
  for (let i = 0; i < 5; i++) (await unread(t, named)).write(LISTING)
  await eventually('the connections', async () => (await countOf()) >= 7)
  await eventually('their end', async () => (await countOf()) <= 2)
  t.notOk(watch.isEnded, 'who waits for events is left alone')
})

async function withLongRecords(t: Test, execArgv: string[], args: string[] = []): Promise<Named> {
  const named = await Named.start(t, { execArgv, args })
  const { api } = named.client()
  const { id } = await api.grant(600_000)
  const names = Array.from({ length: NAMES }, (_, i) => `n/${i}`)
  await Promise.all(names.map(name => api.register(name, id, { endpoint: 'e', drivers: DRIVERS })))
  return named
}

/** A connection that does not read. It is destroyed when the daemon hangs up. */
async function unread(t: Test, { socketPath }: Named): Promise<Socket> {
  const socket = connect(socketPath)
  socket.on('error', () => {})
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  return socket
}
