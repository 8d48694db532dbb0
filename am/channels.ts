/** What sockets use of active messages: channels, their messages, and the event loop's turn. The rest is in index.ts. */

export { Channel, type ChannelOptions, type ChannelOwner, CREDITS_DEFAULT } from './channel.ts'
export { ChannelGroup } from './channel-group.ts'
export { AmError, type AmErrorCode } from './errors.ts'
export { channelOf, type Message } from './message.ts'
export { PollLoop } from './poll-loop.ts'
export { EventLoop, eventLoop, POLLER_COUNTS, type PollerStats, pollerStats } from './progress/event-loop.ts'
export { reliable } from './reliability/reliable.ts'
export { threadNames } from './thread-names.ts'
