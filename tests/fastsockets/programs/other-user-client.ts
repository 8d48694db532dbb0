/**
 * A hostile client that the policy lets in. argv: the port of a TCP listener, and what a unix listener of the same process is
 * known by: its key, which follows from its file, and whatever else is tried. Reports what becomes of each CONNECT.
 */
import net from 'node:net'
import { REFUSAL } from '../../../fastsockets/bootstrap/bootstrap-layout.ts'
import { Peers } from '../../../fastsockets/connect/peers.ts'
import { shadowName, UNIX } from '../../../fastsockets/host/unix-paths.ts'
import type { SocketChannel } from '../../../fastsockets/stream/socket-channel.ts'
import type { StreamSink } from '../../../fastsockets/stream/stream-sink.ts'
import { newOwnSocket } from '../../../nic/index.ts'
import { greetingOf } from '../../support/greeting.ts'

const [port = '0', key = ''] = process.argv.slice(2)
const { connect } = net.Socket.prototype
process.on('disconnect', () => process.exit())

function ask(channel: SocketChannel, name: string): Promise<string> {
  return new Promise(resolve => {
    const sink: Partial<StreamSink> = {
      handleConnected: () => resolve('accepted'),
      handleRefused: () => resolve('refused'),
      handleError: () => resolve('failed'),
    }
    channel.connect(sink as StreamSink, 0, name, UNIX)
  })
}

const peers = new Peers(() => REFUSAL.NOT_LISTENING, connect)
const found = await peers.reach('127.0.0.1', Number(port), 4)
if ('code' in found) throw new Error(found.text)
const byKey = await ask(found.channel, key)
const byNothing = await ask(found.channel, '0'.repeat(32))
const heard = await newOwnSocket()
  .connect({ path: shadowName(key) })
  .toArray()
  .catch(() => [])
const greeted = await greetingOf(key, 0, UNIX)
process.send?.({
  byKey,
  byNothing,
  shadowSaid: Buffer.concat(heard).length,
  greeted: 'code' in greeted ? greeted.code : 'greeted',
})
