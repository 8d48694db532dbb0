/** The questions of the bench to the halves of a contestant (`programs/half.ts`), and their answers. */
import type { EncodedHistogram } from './latency-histogram.ts'

export type Question =
  | { readonly ask: 'serve' }
  | { readonly ask: 'dial'; readonly address: string }
  | ({ readonly ask: 'pingPong' | 'stream'; readonly size: number } & Times)
  | ({ readonly ask: 'connect'; readonly options?: 'spread' } & Times)
  | ({ readonly ask: 'heldRoundTrips' } & Times)
  | { readonly ask: 'hold'; readonly count: number }
  | { readonly ask: 'release' | 'usage' | 'memory' | 'close' }

/** A question to a process, for the process itself or for each thread that it has started. */
export type Asked =
  | Question
  | { readonly ask: 'startThreads'; readonly count: number }
  | { readonly ask: 'threads'; readonly question: Question; readonly count?: number }

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

export interface OfThreads {
  /** One for each thread. */
  readonly answers: readonly object[]
}

export interface Memory {
  readonly bytes: number
}

export interface Failed {
  readonly error: string
}
