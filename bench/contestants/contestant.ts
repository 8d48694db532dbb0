/**
 * A contestant is a way to move bytes between two processes: a server half and a client half, each in a process of its
 * own (`programs/half.ts`), or client halves as threads of one. Suites use only this interface.
 */
import type { LatencyHistogram } from '../latency-histogram.ts'

/** The abilities of contestants: the methods of `Client`, and comparison with few others in turns. */
export type Ability = 'pingPong' | 'stream' | 'connect' | 'hold' | 'takeTurns'
export type Role = 'server' | 'client'

export interface Contestant {
  readonly name: string
  /** One line, without a full stop. */
  readonly what: string
  readonly abilities: readonly Ability[]
  /** Why it does nothing else, where others would have a reason of their own. */
  readonly unable?: string
  /**
   * Looks for messages in a loop, which takes a core for each half; otherwise the event loop says when there are
   * any.
   */
  readonly polls: boolean
  /** Which halves run with `fastsockets/register`. */
  readonly relinked: readonly Role[]
  /** `own`: the client half starts its partner itself, and there is no server half. */
  readonly partner: 'server' | 'own'
  /** Its latencies are means of many, which have no percentiles. */
  readonly tellsMeans?: true
  /** Largest message of `pingPong`; any size if it is not there. */
  readonly sizeMax?: number
  /** Optional packages that it needs. */
  readonly packages?: readonly string[]
  /** Why it cannot run here, in one line. */
  whyNot?(): Promise<string | undefined>
  /**
   * The server half: gives what `dial` needs, and serves until its process ends. Without one, the bench itself
   * calls it.
   */
  serve(): Promise<string>
  /** The client half. Rejects if it is not on the wire that was meant. */
  dial(address: string): Promise<Client>
}

export interface Client {
  /** Sends `size` bytes, waits until as many have come back, and so on for `ms`; records each round trip. */
  pingPong?(size: number, ms: number, latencies: LatencyHistogram): Promise<void>
  /**
   * Sends messages of `size` bytes one way for `ms`, at least one; what the other half has received, by its own
   * clock.
   */
  stream?(size: number, ms: number): Promise<Received>
  /**
   * Opens a connection, has one byte echoed, closes it, and so on for `ms`; records how long each took to open.
   * Whether a program writes its options out or spreads others, Node 20 treats them differently (fastsockets/host/node-20.ts).
   */
  connect?(ms: number, latencies: LatencyHistogram, options?: 'spread'): Promise<void>
  /** Opens `count` connections besides, and holds them. */
  hold?(count: number): Promise<Held>
  /** CPU time of processes that the client half has started itself, so far. */
  partnerCpuUs?(): Promise<number>
  /** A partner that polls stops. */
  close(): Promise<void>
}

export interface Received {
  readonly bytes: number
  /** From the first byte to the last. */
  readonly ms: number
}

export interface Held {
  /** 64 B round trips over all connections in turn, for `ms`, with at most `HELD_WINDOW` under way; records each. */
  roundTrips(ms: number, latencies: LatencyHistogram): Promise<void>
  close(): Promise<void>
}

export const HELD_WINDOW = 32
export const HELD_SIZE = 64
/** Connections that are opened at the same time. */
export const OPENING_AT_ONCE = 32

/** Calls `open` `count` times, a few at a time. */
export async function openMany<T>(count: number, open: () => Promise<T>): Promise<T[]> {
  const opened: T[] = []
  while (opened.length < count) {
    const some = Math.min(OPENING_AT_ONCE, count - opened.length)
    opened.push(...(await Promise.all(Array.from({ length: some }, open))))
  }
  return opened
}
