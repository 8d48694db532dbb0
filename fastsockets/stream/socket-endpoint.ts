import { AmError, ChannelGroup, channelOf, type Message } from '../../am/index.ts'
import { SocketChannel } from './socket-channel.ts'
import {
  ACCEPT,
  BOUND,
  CLOSE,
  CONNECT,
  CONSUMED,
  DATA,
  RD_COMPL,
  REFUSE,
  SINK_AVAIL,
  SRC_AVAIL,
  WR_COMPL,
} from './stream-layout.ts'

let endpoint: ChannelGroup | undefined

/** The endpoint that all sockets of this thread share, with the handlers of stream-layout.ts. */
export function socketEndpoint(): ChannelGroup {
  if (endpoint !== undefined) return endpoint
  endpoint = new ChannelGroup()
  endpoint.setHandler(CONNECT, message => requested(message)?.handleConnect(message))
  endpoint.setHandler(ACCEPT, message => answered(message)?.handleAccept(message))
  endpoint.setHandler(REFUSE, message => answered(message)?.handleRefuse(message))
  endpoint.handlers.setOneWay(DATA, SocketChannel.prototype.handleData)
  endpoint.handlers.setOneWay(CONSUMED, SocketChannel.prototype.handleConsumed)
  endpoint.handlers.setOneWay(CLOSE, SocketChannel.prototype.handleClose)
  endpoint.handlers.setOneWay(SRC_AVAIL, SocketChannel.prototype.handleSourceAvailable)
  endpoint.handlers.setOneWay(RD_COMPL, SocketChannel.prototype.handleReadCompleted)
  endpoint.handlers.setOneWay(SINK_AVAIL, SocketChannel.prototype.handleSinkAvailable)
  endpoint.handlers.setOneWay(WR_COMPL, SocketChannel.prototype.handleWriteCompleted)
  endpoint.setHandler(BOUND, message => requested(message)?.handleBound(message))
  return endpoint
}

/** Who handles a request; nobody, and the channel is over, if it came as a reply, which nobody could answer. */
function requested(message: Message): SocketChannel | undefined {
  return message.isRequest ? ownerOf(message) : refuse(message, 'reply')
}

/** Who handles a reply; nobody, and the channel is over, if it came as a request. */
function answered(message: Message): SocketChannel | undefined {
  return message.isRequest ? refuse(message, 'request') : ownerOf(message)
}

function refuse(message: Message, kind: string): undefined {
  const what = `handler ${message.handler} by a ${kind}`
  const error = new AmError('ERR_AM_PROTOCOL_VIOLATION', `the peer broke the socket protocol: ${what}`)
  ownerOf(message).handleBroken(error)
}

function ownerOf(message: Message): SocketChannel {
  return channelOf(message).owner as SocketChannel
}
