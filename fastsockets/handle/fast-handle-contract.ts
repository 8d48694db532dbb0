/** What the rest of this layer knows of a fast handle (fast-handle.ts). */
import type * as net from 'node:net'
import type { Clock } from '../../nic/clock.ts'
import type { ConnectRequest, SocketInternals, TcpHandle } from '../host/node-internals.ts'
import type { Family } from '../host/unix-paths.ts'
import type { SocketStream } from '../stream/socket-channel.ts'
import type { StreamSink } from '../stream/stream-sink.ts'

export type FastSocket = net.Socket & SocketInternals

export type WriteCallback = (error?: Error | null) => void

/** What a handle takes from the process that it runs in. A thread has one; the simulator makes one for each simulated process. */
export interface HandleHost {
  readonly clock: Clock
  /** Runs `action` in the next closing phase of the event loop. */
  runInClosingPhase(action: () => void): void
}

/** Connects fast handles, and replaces a handle that cannot be fast by a TCP handle of the same socket. */
export interface Dialer {
  /** Starts connecting; returns 0, or a negative errno. Later `handle.finishConnect`, or demotion. */
  dial(handle: FastHandle, request: ConnectRequest, address: string, port: number, family: Family): number
  /** The server has accepted. */
  handleAccepted(handle: FastHandle): void
  /**
   * The server has refused the connection; undefined if it died instead. The program may believe that it is connected.
   */
  handleRefused(handle: FastHandle, refusal: number | undefined): void
  /** The program closed the handle before the server answered. */
  handleClosed(handle: FastHandle): void
  /** Replaces the handle by a TCP handle before connecting, because the program binds the local side. */
  demoteToBind(handle: FastHandle): TcpHandle
}

export interface FastHandle extends StreamSink {
  /** The object in `_handle` of the socket. */
  readonly handle: object
  socket: FastSocket | undefined
  stream: SocketStream | undefined
  /** The name, or the unix path, by which the program connects. */
  host: string | undefined
  /** The TCP handle that took this one's place; closing this one closes that, too. */
  successor: TcpHandle | undefined
  /** The dialer's state of the connect that is under way, or was made. */
  attempt: object | undefined
  /** The TLS socket over the socket that owns this handle. Errors go to the TLS socket. */
  upper: FastSocket | undefined
  readonly isClosed: boolean
  /** True if it connects, or was accepted, on a unix path: it then looks like the handle of a pipe. */
  readonly isOnPath: boolean
  readonly isUnreferenced: boolean
  /** Its bytes go by TCP, for now. */
  readonly isOnTcp: boolean
  unref(): void
  /** Native code that did not read `isStreamBase` has been attached. */
  noteNative(): void
  /** Makes this handle the stream's sink. */
  adopt(stream: SocketStream): void
  /** The stream was refused; another one, or TCP, may follow. */
  dropStream(): void
  /** Runs in the asynchronous context in which the socket was made. */
  run(action: () => void): void
  finishConnect(status: number): void
  /** TCP continues this handle's connect: the handle reports nothing more about it. */
  abandonConnect(): void
  writeFromSocket(
    socket: FastSocket,
    writev: boolean,
    data: unknown,
    encoding: string,
    callback: WriteCallback,
  ): void
  reset(callback: () => void): number
  close(callback?: () => void): void
}

/** `isPipe`: imitates the handle of a unix socket. `causeId`: the async id of the server handle that accepts. */
export type FastHandleClass = new (
  dialer: Dialer | undefined,
  isPipe: boolean,
  causeId?: number,
) => FastHandle
