import { knowsItsPort } from './promised-ports.ts'
import type { Stream } from './stream.ts'
import type { StreamHost } from './stream-host.ts'

/** The channel, as early connections use it. */
interface EarlyChannel {
  readonly host: StreamHost
  readonly listenersClosed: number | undefined
  presumeConnected(stream: Stream): void
}

interface Early {
  readonly stream: Stream
  /** The peer's count of closed listeners when it was last known to listen. */
  readonly listenersClosed: number
  /** The `lookCount` at which its program may be notified. */
  readonly notifiedAt: number
}

/**
 * Connections of which programs are notified before the peer has answered, as a kernel completes handshakes for a
 * listener (decision 0111).
 *
 * The event loop looks for I/O first: then the death of a peer, and listeners that it had closed before, are known.
 */
export class EarlyConnects {
  private readonly channel: EarlyChannel
  private early: Early[] = []

  constructor(channel: EarlyChannel) {
    this.channel = channel
  }

  get size(): number {
    return this.early.length
  }

  add(stream: Stream, listenersClosed: number, notifiedAt: number): void {
    this.early.push({ stream, listenersClosed, notifiedAt })
  }

  /** Delivers 'connect' once to each, whatever its sink does or throws. */
  deliver(): void {
    const { host } = this.channel
    const now = host.lookCount()
    for (let left = this.early.length; left > 0; left--) {
      const early = this.early[0]
      // In the order of the requests; a program may run the event loop inside a callback.
      if (early === undefined) return
      const { stream, notifiedAt } = early
      const isConnecting = stream.state === 'connecting'
      if (isConnecting && ((now - notifiedAt) | 0) < 0) return
      this.early.shift()
      if (!isConnecting || !this.isSure(early)) continue
      this.channel.presumeConnected(stream)
      stream.deliverConnected()
      host.drainTicks()
    }
  }

  clear(): void {
    this.early = []
  }

  /** False: the answer of the peer decides. */
  private isSure({ stream, listenersClosed }: Early): boolean {
    return this.channel.listenersClosed === listenersClosed && knowsItsPort(stream)
  }
}
