/**
 * The handle of a connection that was held (held-connections.ts). Its program sees it once the client has moved it: all that the
 * program writes goes by the stream, and what the client wrote before comes by TCP first.
 */
import type { HandleHost } from '../handle/fast-handle-contract.ts'
import type { ConnectedTcp } from '../handle/tcp-below.ts'
import type { HandleExchange } from '../handle/tls-sockets.ts'
import { PromotedHandle } from './promoted-handle.ts'

export class HeldHandle extends PromotedHandle {
  private onMoved: (() => void) | undefined

  /** `onMoved` gives the handle a socket. */
  constructor(tcp: ConnectedTcp, exchange: HandleExchange, onMoved: () => void, host?: HandleHost) {
    super(tcp, exchange, undefined, undefined, host)
    this.onMoved = onMoved
  }

  protected override handleMoved(): void {
    super.handleMoved()
    this.onMoved?.()
    this.onMoved = undefined
    if (this.socket !== undefined) this.record()
  }

  /** The client stays on TCP. */
  protected override stayIn(): void {
    this.close()
  }
}
