/**
 * Hides sockets and servers of this package from the program's subscribers of Node's diagnostics channels. Node
 * publishes each server and each accepted socket; newer versions publish each connecting socket, too.
 */
import diagnostics, { type Channel } from 'node:diagnostics_channel'
import { isOwn } from '../../nic/index.ts'

const CHANNELS = [
  'net.client.socket',
  'net.server.socket',
  'tracing:net.server.listen:asyncStart',
  'tracing:net.server.listen:asyncEnd',
  'tracing:net.server.listen:error',
]

interface Published {
  readonly server?: object
  readonly socket?: { readonly server?: object }
}

export function hideOwn(): void {
  for (const name of CHANNELS) hideOn(diagnostics.channel(name))
}

function hideOn(channel: Channel): void {
  const publish = function (this: Channel, message: unknown): void {
    const { server, socket } = message as Published
    const subject = server ?? socket?.server ?? socket
    if (subject !== undefined && isOwn(subject)) return
    // Node exchanges the channel's prototype when the first subscriber comes: look `publish` up on each call.
    Object.getPrototypeOf(this).publish.call(this, message)
  }
  Object.defineProperty(channel, 'publish', {
    value: publish,
    writable: true,
    enumerable: false,
    configurable: true,
  })
}
