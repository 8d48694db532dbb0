/** Connect (@connectrpc/connect 2) over active messages. See docs/guide/rpc.md. */

export type { SharedOptions } from './limits.ts'
export { type ServeConnectOptions, serveConnect } from './server.ts'
export { createFastTransport, type FastTransportOptions } from './transport.ts'
