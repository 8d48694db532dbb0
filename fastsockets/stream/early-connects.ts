import { lookCount } from '../host/io-turns.ts'
import { drainTicks } from '../host/node-internals.ts'
import { knowsItsPort } from './promised-ports.ts'
import type { Stream } from './stream.ts'

/**
 * How often the event loop looks for I/O before a program is told: once, as of TCP, and once more. A server that has nothing else
 * to do has answered by then, and is sooner done with a connection whose first bytes come after its answer.
 */
const LOOKS = 2

/** The channel, as far as early connections use it. */
interface EarlyChannel {
  readonly listenersClosed: number | undefined
  presumeConnected(stream: Stream): void
}

interface Early {
  readonly stream: Stream
  /** What the peer showed when one was asked for that it has accepted. */
  readonly listenersClosed: number
  /** When it was asked for, as `lookCount` counts. */
  readonly askedAt: number
}

/**
 * Connections of which the program hears before the peer has answered, as the kernel completes a handshake in the place of
 * a listener (decision 0111).
 *
 * Not before the event loop has looked for I/O: then a peer that had died is known to be dead, and what it had said and closed
 * is known, too.
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

  add(stream: Stream, listenersClosed: number, askedAt: number): void {
    this.early.push({ stream, listenersClosed, askedAt })
  }

  /** Whatever its sink does or throws, each is told once. */
  deliver(): void {
    const now = lookCount()
    for (let left = this.early.length; left > 0; left--) {
      const early = this.early[0]
      // In the order of asking; a program may have run the event loop from within one of them.
      if (early === undefined) return
      const { stream, askedAt } = early
      const isConnecting = stream.state === 'connecting'
      if (isConnecting && ((now - askedAt) | 0) < LOOKS) return
      this.early.shift()
      if (!isConnecting || !this.isSure(early)) continue
      this.channel.presumeConnected(stream)
      stream.deliverConnected()
      drainTicks()
    }
  }

  clear(): void {
    this.early = []
  }

  /** Otherwise the answer will say. */
  private isSure({ stream, listenersClosed }: Early): boolean {
    return this.channel.listenersClosed === listenersClosed && knowsItsPort(stream)
  }
}
