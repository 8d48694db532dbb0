/**
 * The connection that reports the end of a peer on another host. Within a host the doorbell does: peer-death.test.ts.
 */
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { tieLifeline } from '../../../fastsockets/connect/lifeline.ts'
import { ACCEPT } from '../../../fastsockets/stream/stream-layout.ts'
import { SocketLiar } from '../../support/socket-liar.ts'
import { until, withWatchdog } from '../../support/until.ts'

/** A socket of a channel, and both ends of the channel's lifeline. */
async function open(t: Test): Promise<{ liar: SocketLiar; own: net.Socket; peers: net.Socket }> {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const accepted = once(server, 'connection')
  const own = net.connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [peers] = (await accepted) as [net.Socket]
  if (own.connecting) await once(own, 'connect')
  t.teardown(() => {
    server.close()
    own.destroy()
    peers.destroy()
  })
  const liar = new SocketLiar(t)
  await liar.connect()
  tieLifeline(own, liar.stream.channel)
  return { liar, own, peers }
}

for (const [code, told] of [
  ['ETIMEDOUT', 'read ETIMEDOUT'],
  ['EHOSTUNREACH', 'read ETIMEDOUT'],
  ['ECONNRESET', 'read ECONNRESET'],
] as const) {
  t.test(`a lifeline that ends with ${code}: its sockets end with an error, as with TCP`, async t => {
    const { liar, own } = await open(t)
    own.destroy(Object.assign(new Error(`read ${code}`), { code }))
    await until('the end of the channel', () => liar.isGone)
    await until('the error', () => liar.told.length > 0)
    t.strictSame(liar.told, [told])
  })
}

t.test('a peer that goes ends its sockets, and one that breaks off resets them', async t => {
  const gone = await open(t)
  gone.peers.end()
  await until('the end', () => gone.liar.told.length > 0)
  t.strictSame(gone.liar.told, ['end'])
  const broken = await open(t)
  broken.peers.resetAndDestroy()
  await until('the error', () => broken.liar.told.length > 0)
  t.strictSame(broken.liar.told, ['read ECONNRESET'])
})

t.test('a channel that breaks off resets its lifeline', async t => {
  const { liar, peers } = await open(t)
  const failed = once(peers, 'error')
  peers.resume()
  // An ACCEPT is a reply, never a request.
  liar.say(ACCEPT, [1])
  const [error] = await withWatchdog('a reset', failed)
  t.equal(error.code, 'ECONNRESET')
})
