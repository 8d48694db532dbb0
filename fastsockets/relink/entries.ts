/** What the wrappers of preload.ts call: Node's own methods at first, and ours once install.ts has put them here. */
import type { FastSocket } from '../handle/fast-handle-contract.ts'

type Method = (this: never, ...args: never[]) => unknown

type MethodName =
  | 'connect'
  | '_writeGeneric'
  | '_listen2'
  | 'close'
  | '_getpeername'
  | '_getsockname'
  | 'resetAndDestroy'

export const entries: Partial<Record<MethodName, Method>> = {}

/** Gives fast sockets that are sent to another process a handle that can be sent: TCP's if it lies below, or a bridge. */
export interface Bridges {
  isFast(value: unknown): value is FastSocket
  mayReturn(socket: FastSocket): boolean
  /** Settles once the socket is back on TCP, or cannot be. */
  returnToTcp(socket: FastSocket): Promise<unknown>
  bridge(socket: FastSocket): void
}

export const sending: {
  /** Undefined before install.ts is loaded. */
  bridges?: Bridges
} = {}
