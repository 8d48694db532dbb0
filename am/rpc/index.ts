/** RPC over active messages. See am/rpc/README.md. */
export type { WaitOptions } from '../call.ts'
export {
  type Client,
  type ConnectOptions,
  connectService,
  type Destinations,
  disconnect,
  type EachClient,
  type Settled,
  type To,
} from './client.ts'
export { bytesCodec, type Codec, jsonCodec, v8Codec } from './codec.ts'
export { acceptPorts, type FastPort, messagePort, type PortOptions } from './message-port.ts'
export type { PeerEvent } from './remote-service.ts'
export { RpcError, type RpcErrorCode } from './rpc-error.ts'
export { MESSAGE_BYTES_MAX, RPC_HANDLER, WINDOW_BYTES, WINDOW_ITEMS } from './rpc-layout.ts'
export type { RpcStream } from './rpc-stream.ts'
export { type Serving, serve } from './server.ts'
export {
  type CallContext,
  defineService,
  type Handlers,
  type Items,
  type Method,
  type MethodCodecs,
  type Methods,
  method,
  type Service,
  type ServiceOptions,
  type Stream,
  stream,
} from './service.ts'
