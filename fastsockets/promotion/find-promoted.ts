/** From the handle of a socket to the promoted one that it is, or has below it. */
import { fastOf } from '../handle/fast-handle.ts'
import { PromotedHandle } from './promoted-handle.ts'

/** The handle of a socket that has moved, or may move though native code reads it; undefined for all others. */
export function promotedOf(handle: unknown): PromotedHandle | undefined {
  const fast = fastOf(handle)
  return fast instanceof PromotedHandle ? fast : undefined
}

/** As `promotedOf`, also below the handle of a TLS socket. */
export function promotedUnder(handle: object | null): PromotedHandle | undefined {
  return promotedOf(parentOf(handle))
}

/** The TCP handle below the handle of a socket: Node's own, ours, or that of TLS over either. */
export function tcpUnder(handle: object | null): object | null {
  return promotedUnder(handle)?.tcp ?? parentOf(handle)
}

function parentOf(handle: object | null): object | null {
  return (handle as { _parent?: object } | null)?._parent ?? handle
}
