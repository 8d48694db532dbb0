/** Active messages. See am/README.md. */

export type { Status } from '../nic/index.ts'
export { BROKEN, CLOSED, NO_CREDIT, NO_RESOURCE, OK, OUT_OF_BOUNDS, UNSUPPORTED } from '../nic/index.ts'
export type { WaitOptions } from './call.ts'
export { Channel, type ChannelOptions, type ChannelOwner, CREDITS_DEFAULT } from './channel.ts'
export {
  awaitWork,
  ChannelGroup,
  movePollerStats,
  type Progress,
  pollerStats,
  scheduleTurnsBy,
} from './channel-group.ts'
export { describeFrame } from './describe-frame.ts'
export { Endpoint, openEndpoint } from './endpoint.ts'
export { AmError, type AmErrorCode } from './errors.ts'
export type { Handler } from './handler-table.ts'
export { channelOf, type Message } from './message.ts'
export { CREDITS_LIMIT, HANDLER_COUNT, WORDS_MAX } from './message-layout.ts'
export { type EndpointLimits, type EndpointOptions, LONG_MAX_DEFAULT, MEDIUM_MAX } from './options.ts'
export { PollLoop } from './poll-loop.ts'
export { POLLER_COUNTS, type PollerStats } from './poller-counts.ts'
export { threadNames } from './published-names.ts'
export { handleEach } from './reactive/handle-each.ts'
export type { MessageStream } from './reactive/message-stream.ts'
export type { ReceivedMessage } from './received-message.ts'
export { DESTINATIONS_MAX } from './refusals.ts'
export type { ReliabilityOptions } from './reliability/reliability-options.ts'
export { reliable } from './reliability/reliable.ts'
export { ReliableInterface } from './reliability/reliable-interface.ts'
export type { EndpointStats, PeerStats } from './stats.ts'
export type { UndeliverableReason } from './undeliverable.ts'
