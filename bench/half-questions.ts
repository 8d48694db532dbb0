/** What the bench says to the halves of a contestant (`programs/half.ts`), and what they answer. */
import type { EncodedHistogram } from './latency-histogram.ts'

export type Question =
  | { readonly ask: 'serve' }
  | { readonly ask: 'dial'; readonly address: string }
  | ({ readonly ask: 'pingPong' | 'stream'; readonly size: number } & Times)
  | ({ readonly ask: 'connect' | 'heldRoundTrips' } & Times)
  | { readonly ask: 'hold'; readonly count: number }
  | { readonly ask: 'letGo' | 'usage' | 'memory' | 'close' }

export interface Times {
  readonly warmUpMs: number
  readonly ms: number
}

export interface Served {
  readonly address: string
}

export interface Counted {
  readonly ms: number
  readonly latencies: EncodedHistogram
}

export interface Streamed {
  readonly bytes: number
  readonly ms: number
  /** With those of the warm-up. */
  readonly bytesInAll: number
}

export interface Usage {
  /** CPU time so far. */
  readonly cpuUs: number
}

export interface Memory {
  readonly bytes: number
}

export interface Failed {
  readonly error: string
}
