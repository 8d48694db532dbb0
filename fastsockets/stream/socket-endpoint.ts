import { ChannelGroup, type Message } from '../../am/index.ts'
import type { SocketChannel } from './socket-channel.ts'
import {
  ACCEPT,
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
  endpoint.setHandler(CONNECT, message => ownerOf(message).handleConnect(message))
  endpoint.setHandler(ACCEPT, message => ownerOf(message).handleAccept(message))
  endpoint.setHandler(REFUSE, message => ownerOf(message).handleRefuse(message))
  endpoint.setHandler(DATA, message => ownerOf(message).handleData(message))
  endpoint.setHandler(CONSUMED, message => ownerOf(message).handleConsumed(message))
  endpoint.setHandler(CLOSE, message => ownerOf(message).handleClose(message))
  endpoint.setHandler(SRC_AVAIL, message => ownerOf(message).handleSourceAvailable(message))
  endpoint.setHandler(RD_COMPL, message => ownerOf(message).handleReadCompleted(message))
  endpoint.setHandler(SINK_AVAIL, message => ownerOf(message).handleSinkAvailable(message))
  endpoint.setHandler(WR_COMPL, message => ownerOf(message).handleWriteCompleted(message))
  return endpoint
}

function ownerOf(message: Message): SocketChannel {
  return message.channel.owner as SocketChannel
}
