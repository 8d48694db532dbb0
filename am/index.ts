/** Active messages. See am/README.md. */

// What the documents of this folder are about.
export type { Status } from '../nic/index.ts'
export { BROKEN, CLOSED, NO_CREDIT, NO_RESOURCE, OK, OUT_OF_BOUNDS, UNSUPPORTED } from '../nic/index.ts'
export type { WaitOptions } from './call.ts'
// What sockets are built from.
export { Channel, type ChannelOptions, type ChannelOwner, CREDITS_DEFAULT } from './channel.ts'
export { ChannelGroup, type Progress, pollerStats } from './channel-group.ts'
export { describeFrame } from './describe-frame.ts'
export { DESTINATIONS_MAX, Endpoint, openEndpoint } from './endpoint.ts'
export { AmError, type AmErrorCode } from './errors.ts'
export type { Handler } from './handler-table.ts'
export type { Message } from './message.ts'
export { CREDITS_LIMIT, HANDLER_COUNT, WORDS_MAX } from './message-layout.ts'
export { type EndpointLimits, type EndpointOptions, LONG_MAX_DEFAULT, MEDIUM_MAX } from './options.ts'
export type { MessageStream } from './reactive/message-stream.ts'
export type { ReceivedMessage } from './received-message.ts'
export type { EndpointStats, PeerStats } from './stats.ts'
export type { UndeliverableReason } from './undeliverable.ts'
