/** A call with one argument and one result, as a promise of bytes. */
import type { Link, LinkCall } from './link.ts'
import { decodeError, type RpcError, rpcError } from './rpc-error.ts'
import { CANCELLED, type DEADLINE, FLAG_ERROR, FLAG_LAST, FLAG_OPENER } from './rpc-layout.ts'

export interface Once {
  readonly service: number
  readonly method: number
  /** 0: there is no deadline. */
  readonly timeoutMs: number
  readonly bytes: Uint8Array
  /** What the peer is told when the signal is aborted: CANCELLED, or DEADLINE. */
  readonly reasonOf?: (signal: AbortSignal) => typeof CANCELLED | typeof DEADLINE
}

/** Rejects with the signal's reason if it is aborted first; the peer is told. */
export function callOnce(
  link: Link,
  { service, method, timeoutMs, bytes, reasonOf }: Once,
  signal?: AbortSignal,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const finish = (): void => {
      link.forget(id, FLAG_OPENER)
      signal?.removeEventListener('abort', cancel)
    }
    const cancel = (): void => {
      finish()
      link.sendCancel(id, FLAG_OPENER, (signal && reasonOf?.(signal)) ?? CANCELLED)
      reject(signal?.reason)
    }
    const fail = (error: RpcError): void => {
      finish()
      reject(error)
    }
    const call: LinkCall = {
      handleData: (bytes, flags) => {
        finish()
        if ((flags & FLAG_ERROR) !== 0) reject(decodeError(bytes))
        else resolve(bytes)
      },
      handleCredit: () => {},
      handleCancel: () => fail(rpcError('ERR_RPC_CANCELLED', `${link.peerName} has cancelled the call`)),
      handleLost: fail,
    }
    const id = link.open(call, service, method, timeoutMs, FLAG_LAST, bytes)
    signal?.addEventListener('abort', cancel, { once: true })
  })
}
