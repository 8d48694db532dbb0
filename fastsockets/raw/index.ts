/** Raw sockets: the interface of the papers, for programs that need no `net.Socket` between them and the wire. */
export type { Transport } from '../handle/transport.ts'
export { CompletionQueue, type Member } from './completion-queue.ts'
export { MESSAGE_MAX } from './message-layout.ts'
export { END, type MessageSocket } from './message-socket.ts'
export { type ConnectMessagesOptions, type ConnectOptions, connect } from './raw-dialer.ts'
export { type ListenMessagesOptions, type ListenOptions, listen, type RawServer } from './raw-server.ts'
export type { RawSocket } from './raw-socket.ts'
