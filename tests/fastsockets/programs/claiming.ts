/**
 * A container that asks a server of another one to move connections that are not its own. argv: the role, and a place.
 *
 * - `owner`, plain: connects to the place, and says by what names a peer would ask for its connection.
 * - `claimer`: asks for the connection of each message { host, port, name }, and says what came of it.
 */
import { once } from 'node:events'
import net, { type NetConnectOpts } from 'node:net'
import { REFUSAL } from '../../../fastsockets/bootstrap/bootstrap-layout.ts'
import { Peers } from '../../../fastsockets/connect/peers.ts'
import { inodeOf } from '../../../fastsockets/handle/tcp-below.ts'
import { PROMOTION, UNIX, unixKey } from '../../../fastsockets/host/unix-paths.ts'
import type { StreamSink } from '../../../fastsockets/stream/stream-sink.ts'
import { peerInode } from '../../../nic/index.ts'

export interface Claim {
  /** Of the published listener by which the claimer reaches the server; a path, or an address. */
  readonly host: string
  readonly port: number
  readonly name: string
}

const [role, place] = process.argv.slice(2)
process.on('disconnect', () => process.exit())

if (role === 'owner') {
  const socket = net.connect(JSON.parse(place as string) as NetConnectOpts)
  await once(socket, 'data')
  const { localAddress, localPort, remoteAddress } = socket
  const inode = inodeOf((socket as unknown as { _handle: object })._handle)
  const name = inode === undefined ? `${localAddress} ${localPort} ${remoteAddress}` : `${peerInode(inode)}`
  process.send?.({ name })
  socket.on('close', () => process.send?.({ closed: true }))
} else {
  const peers = new Peers(() => REFUSAL.NOT_LISTENING, net.Socket.prototype.connect)
  process.on('message', async (claim: Claim) => process.send?.({ outcome: await ask(claim) }))

  async function ask({ host, port, name }: Claim): Promise<string> {
    const isPath = host.startsWith('/')
    const found = await peers.reach(isPath ? (unixKey(host) as string) : host, port, isPath ? UNIX : 4)
    if ('code' in found) return found.code
    return await new Promise(resolve => {
      const sink = new Proxy({} as StreamSink, {
        get: (_, method) => (method === 'isReading' ? true : (answer: unknown) => answered(method, answer)),
      })
      const answered = (method: string | symbol, answer: unknown): void => {
        if (method === 'handleConnected') resolve('taken over')
        if (method === 'handleRefused') resolve(`refused: ${answer}`)
      }
      if (found.channel.connect(sink, port, name, PROMOTION) === undefined) resolve('no room')
    })
  }
}
