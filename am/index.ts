/** Active messages. See am/README.md. */
export { Channel, type ChannelOptions, type ChannelOwner, CREDITS_DEFAULT } from './channel.ts'
export { Endpoint, type EndpointOptions, pollerStats } from './endpoint.ts'
export { AmError, type AmErrorCode } from './errors.ts'
export type { Handler } from './handler-table.ts'
export type { Message } from './message.ts'
export { CREDITS_LIMIT, HANDLER_COUNT, WORDS_MAX } from './message-layout.ts'
